"""Hosts that are network namespaces of this machine, and what runs on them: a cluster's nodes, a driver, a Redis.

As root. Each host has a link to a bridge in a namespace of its own, so nothing of the machine's own network is touched: `tc tbf` limits
links, nftables drop packets. Whoever leaves a Network ends all that it has started there.
"""

import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import measure

PROGRAM = measure.ROOT / "bench" / "runtime_programs" / "network.py"
MENGER = measure.BUILD / "menger"
NODES = 4
STORE_BYTES = 2 * 10**8
PATIENCE_S = 30
STUCK_S = 200  # Longer than the program itself waits for what never ends.


class Network:
    """Hosts that are network namespaces, each with a link to one bridge; its end ends all that runs in them."""

    keep = False  # The logs.

    def __init__(self, hosts):
        for program in ("ip", "tc", "nft", "openssl"):
            if shutil.which(program) is None:
                raise measure.Failed(f"{program} is not there (Debian's iproute2, nftables, openssl)")
        if os.geteuid() != 0:
            raise measure.Failed("network namespaces need root")
        self.prefix = f"menger{os.getpid()}-"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="menger-network-"))
        self.addresses = {host: f"10.77.0.{number}" for number, host in enumerate(hosts, 1)}
        try:
            self.make_namespace("switch")
            self.ip("switch", "link add bridge type bridge")
            self.ip("switch", "link set bridge up")
            for host, address in self.addresses.items():
                self.make_host(host, address)
            self.make_certificates()
        except BaseException:
            self.end(False)
            raise

    def make_namespace(self, host):
        call("ip", "netns", "add", self.prefix + host)
        self.ip(host, "link set lo up")

    def make_host(self, host, address):
        self.make_namespace(host)
        # A packet of segments that the other end would take apart is lost as one.
        self.ip("switch", f"link add {host} gso_max_segs 1 type veth peer name eth0 netns {self.prefix}{host}")
        self.ip("switch", f"link set {host} master bridge up")
        self.ip(host, "link set eth0 gso_max_segs 1 up")
        self.ip(host, f"address add {address}/24 dev eth0")
        self.nft(host, "add table inet net; add set inet net unheard { type ipv4_addr; };"
                       "add chain inet net in { type filter hook input priority 0; };"
                       "add rule inet net in ip saddr @unheard drop; add chain inet net loss;"
                       "add rule inet net in iifname eth0 jump loss")  # fmt: skip

    def make_certificates(self):
        def openssl(*arguments):
            call("openssl", *arguments, cwd=self.folder)

        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem", "-days", "2", "-subj", "/CN=authority")
        openssl("req", *key, "-keyout", "host.key", "-out", "host.csr", "-subj", "/CN=host")
        (self.folder / "names").write_text("subjectAltName=" + ",".join(f"IP:{address}" for address in self.addresses.values()))
        openssl("x509", "-req", "-in", "host.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", "2",
                "-extfile", "names", "-out", "host.pem")  # fmt: skip

    def variables(self):
        """Of whoever is to be of the cluster."""
        told = {name: value for name, value in os.environ.items() if not name.startswith("MENGER_") or name == "MENGER_RUNTIME_LIBRARY"}
        return told | {"MENGER_CLUSTER_TOKEN": self.prefix, "MENGER_TLS_CERTIFICATE": str(self.folder / "host.pem"),
                       "MENGER_TLS_KEY": str(self.folder / "host.key"),
                       "MENGER_TLS_AUTHORITIES": str(self.folder / "authority.pem")}  # fmt: skip

    def ip(self, host, command):
        return call("ip", "-n", self.prefix + host, *command.split())

    def nft(self, host, rules):
        call("ip", "netns", "exec", self.prefix + host, "nft", rules)

    def start(self, host, command, **options):
        """A process on a host; its id is the command's own."""
        command = ["ip", "netns", "exec", self.prefix + host, *map(str, command)]
        return subprocess.Popen(command, start_new_session=True, **options)

    def processes(self, host):
        return [int(each) for each in call("ip", "netns", "pids", self.prefix + host).split()]

    def bytes_sent(self, host):
        return json.loads(self.ip(host, "-s -j link show eth0"))[0]["stats64"]["tx"]["bytes"]

    def limit(self, host, mbit):
        """Both ways; None: as fast as it can be."""
        for where, device in ((host, "eth0"), ("switch", host)):
            root = f"dev {device} root"
            words = f"replace {root} tbf rate {mbit}mbit burst 64kb latency 20ms" if mbit else f"del {root}"
            call("tc", "-n", self.prefix + where, "qdisc", *words.split(), check=mbit is not None)

    def lose(self, percent, hosts=None):
        for host in hosts or self.addresses:
            rule = f"; add rule inet net loss numgen random mod 1000 < {round(10 * percent)} drop" if percent else ""
            self.nft(host, f"flush chain inet net loss{rule}")

    def deafen(self, host, to):
        """From now on a host hears nothing of those others."""
        for other in to:
            self.nft(host, f"add element inet net unheard {{ {self.addresses[other]} }}")

    def cut(self, hosts, others=None):
        others = [other for other in others or self.addresses if other not in hosts]
        for host in hosts:
            self.deafen(host, others)
        for other in others:
            self.deafen(other, hosts)

    def heal(self):
        for host in self.addresses:
            self.nft(host, "flush set inet net unheard")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(self.keep)

    def end(self, keep):
        before = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGTERM)}
        for host in [*self.addresses, "switch"]:
            end = time.monotonic() + 5
            while time.monotonic() < end:  # What it starts meanwhile, too.
                pids = (call("ip", "netns", "pids", self.prefix + host, check=False) or "").split()
                if not pids:
                    break
                for pid in pids:
                    kill(int(pid))
                time.sleep(0.02)
            call("ip", "netns", "del", self.prefix + host, check=False)
        if keep:
            measure.note(f"logs: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        for each, handler in before.items():
            signal.signal(each, handler)


def call(*command, check=True, cwd=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd)
    if check and done.returncode != 0:
        raise measure.Failed(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Cluster:
    """`menger node` on the hosts node1 (the head) to node4, each with one CPU and the resource n<i>, and a driver."""

    def __init__(self, network, store=None):
        self.network, self.store, self.processes = network, store, {}
        self.address = f"{network.addresses['node1']}:7070"
        for number in range(1, NODES + 1):
            self.start(number)
        self.await_nodes(NODES)

    def log(self, number):
        return self.network.folder / f"node{number}.log"

    def start(self, number):
        first = ["--head", "--listen", self.address] if number == 1 else ["--join", self.address]
        if number == 1 and self.store:
            first += ["--store", self.store]
        command = [MENGER, "node", *first, "--cpus", 1, "--resources", f"n{number}=1000", "--store-bytes", STORE_BYTES,
                   "--cache", self.network.folder / f"cache{number}"]  # fmt: skip
        with open(self.log(number), "a") as log:
            process = self.network.start(f"node{number}", command, stdout=subprocess.PIPE, stderr=log, text=True,
                                         env=self.network.variables())  # fmt: skip
        self.processes[number] = process
        if number == 1 and not process.stdout.readline():
            raise measure.Failed(f"the head has not begun: {self.log(1).read_text()[-400:]}")

    def kill(self, number):
        """With its workers, as if its power was gone."""
        for pid in self.network.processes(f"node{number}"):
            kill(pid)
        self.processes.pop(number).wait()

    def kill_worker(self, number):
        own = self.processes[number].pid
        workers = [pid for pid in self.network.processes(f"node{number}") if pid != own]
        for pid in workers[:1]:
            kill(pid)

    def ended(self, number, within_s):
        """The status that a node has ended with; None if it lives on."""
        try:
            return self.processes[number].wait(within_s)
        except subprocess.TimeoutExpired:
            return None

    def up(self):
        command = ["ip", "netns", "exec", self.network.prefix + "driver", str(MENGER), "node", "list", self.address]
        try:
            return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20,
                                  env=self.network.variables()).stdout.count(" up ")  # fmt: skip
        except subprocess.TimeoutExpired:
            return 0

    def await_nodes(self, nodes, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while time.monotonic() < end:
            if self.up() >= nodes:
                return
            time.sleep(0.1)
        raise measure.Failed(f"{nodes} nodes were not there within {patience_s} s")

    def last_words(self, number):
        lines = self.log(number).read_text().strip().splitlines()
        return lines[-1] if lines else ""

    def end(self):
        for number in sorted(self.processes, reverse=True):
            self.kill(number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Driver:
    """The program that checks, on the driver's host; what happens is told to it by lines."""

    def __init__(self, cluster, *arguments):
        network = cluster.network
        variables = network.variables() | {"MENGER_ADDRESS": cluster.address, "PYTHONPATH": str(measure.ROOT / "python")}
        self.errors = network.folder / "driver.log"
        with open(self.errors, "a") as errors:
            self.process = network.start("driver", [sys.executable, PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=errors, text=True, env=variables, cwd=PROGRAM.parent)  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def await_line(self, begin, limit_s):
        end = time.monotonic() + limit_s
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                self.process.kill()
                raise measure.Failed(f"the program hangs: no '{begin}' within {limit_s:.0f} s") from None
            if line is None:
                status = self.process.wait()
                raise measure.Failed(f"the program ended with {status}: " + " / ".join(self.errors.read_text().splitlines()[-3:]))
            if line.startswith(begin):
                return line

    def say(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # Why it has ended says who waits for its next line.

    def result(self, limit_s=STUCK_S):
        result = json.loads(self.await_line("RESULT ", limit_s)[7:])
        measure.record(result)
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Redis:
    """A primary and a replica, which a sentinel watches, each on a host."""

    HOSTS = ("redis1", "redis2", "sentinel")

    def __init__(self, network):
        for program in ("redis-server", "redis-sentinel", "redis-cli"):
            if shutil.which(program) is None:
                raise measure.Failed(f"{program} is not there (Debian's redis-server, redis-sentinel)")
        self.network, self.processes = network, {}
        self.start("redis1")
        self.start("redis2", "--replicaof", network.addresses["redis1"], 6379)
        folder = self.folder("sentinel")
        (folder / "sentinel.conf").write_text(
            f"port 26379\nbind 0.0.0.0\nprotected-mode no\ndir {folder}\nsentinel monitor menger {network.addresses['redis1']} 6379 1\n"
            "sentinel down-after-milliseconds menger 1000\nsentinel failover-timeout menger 5000\n")  # fmt: skip
        self.run("sentinel", ["redis-sentinel", folder / "sentinel.conf"])
        self.store = f"redis-sentinel://{network.addresses['sentinel']}:26379/0#menger"
        end = time.monotonic() + PATIENCE_S
        while "num-slaves\n1" not in self.ask("sentinel", "sentinel", "master", "menger"):
            if time.monotonic() > end:
                raise measure.Failed("the Redis has no replica that the sentinel knows")
            time.sleep(0.2)

    def folder(self, host):
        folder = self.network.folder / host
        folder.mkdir(exist_ok=True)
        return folder

    def run(self, host, command):
        with open(self.folder(host) / "log", "a") as log:
            self.processes[host] = self.network.start(host, command, stdout=log, stderr=log)

    def start(self, host, *arguments):
        self.run(host, ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", self.folder(host),
                        "--repl-diskless-sync-delay", 0, *arguments])  # fmt: skip

    def ask(self, host, *words):
        port = 26379 if host == "sentinel" else 6379
        command = ["ip", "netns", "exec", self.network.prefix + host, "redis-cli", "-p", str(port), *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout

    def primary(self):
        address = self.ask("sentinel", "sentinel", "get-master-addr-by-name", "menger").split()[0]
        return next(host for host, own in self.network.addresses.items() if own == address)

    def kill(self, host):
        process = self.processes.pop(host)
        process.kill()
        process.wait()

    def start_again(self, host):
        """As a replica of whoever is the primary now."""
        self.start(host, "--replicaof", self.network.addresses[self.primary()], 6379)
