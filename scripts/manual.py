#!/usr/bin/env python3
"""Writes the manual page of the program, from what its argument parser says of itself.

    tieredcache --experimental-dump-help | manual.py VERSION DATE >tieredcache.1
"""
import json
import sys


def plain(text):
    """Text for groff: nothing in it is taken for a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith((".", "\\(aq")) else line for line in text.split("\n"))


def paragraphs(text):
    """Paragraphs; lines that are commands stay lines."""
    return "\n.PP\n".join(
        ".nf\n" + plain(part.strip()) + "\n.fi" if part.strip().startswith("tieredcache ")
        else plain(part.replace("\n", " ").strip()) for part in text.split("\n\n"))


def spelling(name):
    return ("\\-" if name["kind"] == "short" else "\\-\\-") + plain(name["name"])


def term(argument):
    value = "\\fI" + plain(argument["valueName"]) + "\\fR"
    if argument["kind"] == "positional":
        return value + (" ..." if argument["isRepeating"] else "")
    names = sorted(argument["names"], key=lambda name: name["kind"] != "short")
    spelled = ", ".join("\\fB" + spelling(name) + "\\fR" for name in names)
    return spelled + (" " + value if argument["kind"] == "option" else "")


def description(argument):
    text = argument.get("abstract", "")
    if argument.get("discussion"):
        text += " " + argument["discussion"]
    if values := argument.get("allValues"):
        text += " One of " + ", ".join(values) + "."
    if argument.get("defaultValue") is not None:
        text += f" The default is {argument['defaultValue']}."
    return plain(text.replace("\n", " ").strip())


def arguments(command, shown):
    """The arguments of a command, without those that every command has."""
    own = [each for each in command.get("arguments", []) if each["shouldDisplay"]]
    return [each for each in own if (each["valueName"] in ("help", "version")) != shown]


def synopsis(argument):
    text = term(argument)
    if argument["kind"] != "positional":
        return None
    return f"[{text}]" if argument["isOptional"] else text


def common(commands):
    """What several commands share, as sections: it is described once."""
    sections = {}
    for command in commands:
        for argument in arguments(command, shown=True):
            if title := argument.get("sectionTitle"):
                sections.setdefault(title, {}).setdefault(argument["valueName"] + term(argument), argument)
    return {title: list(each.values()) for title, each in sections.items()}


def options(listed):
    return [line for each in listed for line in (".TP", term(each), description(each))]


def page(root, version, date):
    commands = [each for each in root["subcommands"] if each["shouldDisplay"] and each["commandName"] != "help"]
    name = root["commandName"]
    lines = [f'.TH {name.upper()} 1 "{date}" "{name} {version}" "User Commands"', ".SH NAME",
             f"{name} \\- " + plain(root["abstract"][0].lower() + root["abstract"][1:].rstrip(".")), ".SH SYNOPSIS",
             f"\\fB{name}\\fR \\fIcommand\\fR [\\fIoption\\fR ...] [\\fIargument\\fR ...]", ".SH DESCRIPTION",
             paragraphs(root["discussion"]), ".SH COMMANDS"]
    for command in commands:
        own = [each for each in arguments(command, shown=True) if not each.get("sectionTitle")]
        words = [f"\\fB{plain(command['commandName'])}\\fR"] + [synopsis(each) for each in own if synopsis(each)]
        titles = list(dict.fromkeys(each["sectionTitle"] for each in arguments(command, shown=True)
                                    if each.get("sectionTitle")))
        lines += [".SS " + " ".join(words), plain(command["abstract"])]
        if command.get("discussion"):
            lines += [".PP", paragraphs(command["discussion"])]
        lines += options(own)
        if titles:
            lines += [".PP", "See also: " + ", ".join(title.lower() for title in titles) + "."]
    for title, listed in common(commands).items():
        lines += [".SH " + plain(title).upper()] + options(listed)
    lines += [".SH COMMON OPTIONS"] + options(arguments(root, shown=False))
    lines += [".SH FILES", ".TP", "\\fI~/.cache/tieredcache\\fR",
              "The cache directory; tieredcache under $XDG_CACHE_HOME where that is set. "
              "That of \\fBserve \\-\\-origin\\fR is tieredcache\\-reverse beside it.",
              ".TP", "\\fI/usr/lib/systemd/user/tieredcache.service\\fR",
              "Runs \\fBtieredcache serve\\fR for a user: systemctl \\-\\-user enable \\-\\-now tieredcache."]
    return "\n".join(lines) + "\n"


print(page(json.load(sys.stdin)["command"], sys.argv[1], sys.argv[2]), end="")
