// The program of docs/replay.md: all of it stands there.
#include "blocks/replay/in_a_c_program_of_your_own_1.declarations.inc"
