"""A job of the runtime, looked at from outside while it runs: `menger status` and `menger timeline`."""

import json
import os
import time
import unittest
import unittest.mock

import program


class StatusTest(program.ProgramTest):
    def setUp(self):
        super().setUp()
        changed = unittest.mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(self.folder))
        changed.start()
        self.addCleanup(changed.stop)

    def ask(self, *arguments):
        return self.succeed(*arguments).stdout

    def await_status(self, holds):
        """What the only job says of itself as soon as that `holds`."""
        deadline = time.monotonic() + program.PATIENCE_S
        while time.monotonic() < deadline:
            asked = self.run_program("status", "--json")
            if asked.returncode == 0 and holds(json.loads(asked.stdout)):
                return json.loads(asked.stdout)
        self.fail(asked.stdout + asked.stderr)

    def test_without_a_job_it_says_so(self):
        self.assertEqual(self.ask("status", "--names"), "")
        self.refuse("status", saying=["no job"])

    def test_a_running_job_says_what_it_does(self):
        job = self.start("train", "cartpole_es", "--set", "steps=1000000000000", "--out", "run")
        self.assertEqual(self.await_status(lambda now: now["tasks"]["finished"] > 0)["process"], job.pid)
        name = self.ask("status", "--names").strip()
        text = self.ask("status", job.pid)
        self.assertIn(f"of menger, process {job.pid}", text)
        self.assertIn("cpu: ", text)
        self.assertIn('menger_tasks_total{what="finished"}', self.ask("status", "--metrics"))
        self.ask("timeline", "out.json")
        events = json.loads((self.folder / "out.json").read_text())["traceEvents"]
        self.assertTrue(any(event["ph"] == "X" for event in events))
        self.refuse("status", "9-9", saying=["no job '9-9'", name])
        job.kill()
        job.wait(program.PATIENCE_S)
        self.assertEqual(self.ask("status", "--names"), "")  # What it left is no job.


if __name__ == "__main__":
    unittest.main(verbosity=2)
