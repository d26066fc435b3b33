#!/usr/bin/env bash
# store_and_map.sh [ARGUMENT...]  builds store_and_map.cc, and the node's logic once with each hash map (20 seconds each), in
# .peers/store_and_map, and runs it; its first lines tell the arguments.
#
# Needs `make build` and, of Debian, libsqlite3-dev; the maps of libabsl-dev, libboost1.81-dev and robin-map-dev are beside ours
# where their headers are found. CPATH and LIBRARY_PATH may name other places of either.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly build=build/release out=.peers/store_and_map
readonly archives=("$build"/src/menger/{runtime/libmenger_runtime,tensor/libmenger_tensor,base/libmenger_base}.a)
readonly libraries=("${archives[@]}" -lfmt -lspdlog -lxxhash -ldl)
# As the release build compiles: the compiler and its options.
command=$(python3 -c 'import json, sys
print(next(c["command"] for c in json.load(sys.stdin) if c["file"].endswith("/node/object_table.cc")))' \
  <"$build/compile_commands.json")
read -ra compile <<<"${command%% -o *}"

has() { "${compile[@]}" -x c++ -fsyntax-only -include "$1" /dev/null 2>/dev/null; }

maps=(IdMap LowBesideMap)
absl=()
if has absl/container/flat_hash_map.h; then
  maps+=(AbslMap)
  absl=(-labsl_raw_hash_set -labsl_hashtablez_sampler -labsl_throw_delegate)
fi
if has boost/unordered/unordered_flat_map.hpp; then maps+=(BoostMap); fi
if has tsl/robin_map.h; then maps+=(RobinMap); fi

is_new() {  # is_new OUTPUT SOURCE...: it is newer than they and what all are made of.
  local output=$1 source
  for source in "${archives[0]}" bench/peers/{peer_maps,rows}.h "${@:2}"; do [[ $output -nt $source ]] || return; done
}

mkdir -p "$out"
nodes=()
for map in "${maps[@]}"; do
  node=$out/node_$map.so
  nodes+=("$node")
  is_new "$node" bench/peers/node_calls.cc && continue
  echo "Building the node's logic with $map" >&2
  for source in src/menger/runtime/node/*.cc bench/peers/node_calls.cc; do
    [[ $source == *_test.cc ]] || echo "#include \"$PWD/$source\""
  done >"$out/$map.cc"
  "${compile[@]}" -fvisibility=hidden -DNODE_MAP="$map" -include bench/peers/peer_maps.h -shared -o "$node" "$out/$map.cc" \
    -Wl,--exclude-libs,ALL -Wl,-Bsymbolic "${libraries[@]}" "${absl[@]}"
done
program=$out/store_and_map
is_new "$program" bench/peers/{store_and_map.cc,sqlite_store.h} ||
  "${compile[@]}" -o "$program" bench/peers/store_and_map.cc "${libraries[@]}" "${absl[@]}" -lsqlite3
echo "Lines of EmbeddedStore with its log: $(cat src/menger/runtime/control/{embedded_store,store_log}.{h,cc} | wc -l);" \
  "of the frames that replay's log has, too: $(cat src/menger/base/frame_file.{h,cc} | wc -l);" \
  "of the adapter to SQLite: $(wc -l <bench/peers/sqlite_store.h); of IdMap: $(wc -l <src/menger/runtime/values/id_map.h)"
exec "$program" --folder "$out/stores" --nodes "${nodes[@]}" "$@"
