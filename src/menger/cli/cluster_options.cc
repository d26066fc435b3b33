#include "menger/cli/cluster_options.h"

#include "menger/base/error.h"

namespace menger {

void AddTlsOptions(CLI::App& command, RuntimeOptions& access) {
  command.add_option(
      "--tls-certificate", access.tls_certificate,
      "This process's certificate (PEM); needed beyond this machine, with the next two");
  command.add_option("--tls-key", access.tls_key, "Its key");
  command.add_option("--tls-authorities", access.tls_authorities,
                     "Whose certificates those of the cluster have");
}

ClusterAccess ClusterOf(const RuntimeOptions& access) {
  ClusterAccess cluster = AccessOf(access);
  if (cluster.address.empty()) {
    throw InvalidArgument("of which cluster? Name its head, as HOST:PORT, or set MENGER_ADDRESS");
  }
  return cluster;
}

}  // namespace menger
