#pragma once

#include "menger/runtime/calls/worker_program.h"
#include "menger/runtime/cluster/program_manifest.h"

namespace menger {

// What other machines need to run workers of a program of this process.
//
// Of this program's own image these are its executable and the shared libraries that it has loaded,
// but for those of the system, which a node must have: what lies in /lib, /lib64, /usr/lib ...,
// and the C library wherever it is. (What /usr/local has was put there by somebody, and is
// shipped.) A library that it opens by a path later, or beside itself, the node must have, too.
//
// Of another program, such as Python's, the node must have the program itself and its packages
// under the same paths; shipped is the folder that it works in (working_folder.h), by default that
// of this process. So is one that a WorkerProgram of this program's own image names. Where it
// cannot be shipped the manifest says why, and the node must have it.
//
// Variables are those of the WorkerProgram: of this process's own environment nothing is shipped.
//
// Reads all of these files: about 0.1 s for each GB that the system has in memory. Throws as
// ReadContent for the executable and libraries, InvalidArgument as EncodeManifest.
ProgramManifest DescribeProgram(const WorkerProgram& program);

// Where the driver has a file of its manifest: its path, but for its own executable what it runs,
// whatever has come to its path since.
std::string SourceOf(const ProgramFile& file);

}  // namespace menger
