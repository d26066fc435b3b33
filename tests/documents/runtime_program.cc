// The first program of docs/runtime.md: all of it stands there.
#include "blocks/runtime/the_runtime_tasks_actors_and_objects_1.declarations.inc"
