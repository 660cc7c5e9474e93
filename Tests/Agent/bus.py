#!/usr/bin/python3
"""A bus of D-Bus of its own, with the services that say what a machine is like (python3-dbusmock).

Prints the address of the bus, then an `ok` behind each line that it reads:

    network-manager N   NetworkManager says Metered N
    portal yes|no       the portal says GetMetered
    power yes|no        UPower says OnBattery
    idle yes|no         logind says IdleHint
    storm N             UPower says N times that something has changed
    gone SERVICE        the service ends
    stop|go SERVICE     the service answers no more, and again (SIGSTOP, SIGCONT)

Ends when its input ends.
"""

import os
import signal
import subprocess
import sys

import dbus
import dbusmock

PROPERTIES = {
    "network-manager": ("org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                        "org.freedesktop.NetworkManager", "Metered"),
    "power": ("org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower", "OnBattery"),
    "idle": ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "IdleHint"),
}
PORTAL = ("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop", "org.freedesktop.portal.NetworkMonitor")

daemon = subprocess.Popen(
    ["dbus-daemon", "--session", "--nofork", "--print-address=1"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
)
address = daemon.stdout.readline().strip()
os.environ["DBUS_SESSION_BUS_ADDRESS"] = address
bus = dbus.bus.BusConnection(address)
services = {}


def mock(name, service, path, interface):
    """The mock of a service, and whether it is new."""
    is_new = name not in services
    if is_new:
        services[name] = dbusmock.DBusTestCase.spawn_server(service, path, interface, system_bus=False, stdout=subprocess.DEVNULL)
    return dbus.Interface(bus.get_object(service, path), dbusmock.MOCK_IFACE), is_new


def set_property(name, text):
    service, path, interface, member = PROPERTIES[name]
    value = dbus.UInt32(int(text)) if name == "network-manager" else dbus.Boolean(text == "yes")
    service, is_new = mock(name, service, path, interface)
    if is_new:
        service.AddProperty(interface, member, value)
    service.UpdateProperties(interface, {member: value})


def set_portal(text):
    service, _ = mock("portal", *PORTAL)
    service.AddMethod(PORTAL[2], "GetMetered", "", "b", f"ret = {text == 'yes'}")
    service.EmitSignal(PORTAL[2], "changed", "", dbus.Array([], signature="v"))


def storm(text):
    service, path, interface, member = PROPERTIES["power"]
    service, _ = mock("power", service, path, interface)
    for index in range(int(text)):
        service.UpdateProperties(interface, {member: dbus.Boolean(index % 2 == 0)})


print(address, flush=True)
try:
    for line in sys.stdin:
        what, text = line.split()
        if what == "gone":
            services[text].terminate()
            services.pop(text).wait()
        elif what in ("stop", "go"):
            services[text].send_signal(signal.SIGSTOP if what == "stop" else signal.SIGCONT)
        elif what == "portal":
            set_portal(text)
        elif what == "storm":
            storm(text)
        else:
            set_property(what, text)
        print("ok", flush=True)
finally:
    for service in services.values():
        service.kill()
        service.wait()
    daemon.terminate()
    daemon.wait()
