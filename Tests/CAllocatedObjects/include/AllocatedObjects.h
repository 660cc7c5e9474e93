/// Tells of the objects that Swift code makes, to a test that counts them.
#ifndef TIEREDCACHE_ALLOCATED_OBJECTS_H
#define TIEREDCACHE_ALLOCATED_OBJECTS_H

/// Called with the metadata of an object's type, on the thread that makes the object. It must make
/// none itself.
typedef void (*tc_object_observer)(const void *metadata);

/// Tells `observer` of all objects from now on, boxes and contexts of closures among them; NULL for
/// nobody. Only on Linux, and not of objects that the optimiser puts on a stack.
void tc_observe_objects(tc_object_observer observer);

#endif
