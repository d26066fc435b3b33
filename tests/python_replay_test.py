"""Reverb's names over replay: tables, writers of both kinds, samples, priorities, other processes, checkpoints."""

import collections
import gc
import os
import pickle
import stat
import tempfile
import time
import unittest

import numpy as np
import python_replay
from python_replay import ReplayTest, output, python, reverb, uniform

Point = collections.namedtuple("Point", "y x")


def values(client, table, count, **options):
    """The first array of each of the next items."""
    return [sample.data[0] for sample in client.sample(table, count, emit_timesteps=False, **options)]


class WritingTest(ReplayTest):
    def test_the_first_program_of_reverb_s_page_runs(self):
        client = self.serve(uniform())
        client.insert([0, 1], priorities={"table": 1.0})
        with client.trajectory_writer(num_keep_alive_refs=3) as writer:
            writer.append({"a": 2, "b": 12})
            writer.append({"a": 3, "b": 13})
            writer.append({"a": 4, "b": 14})
            writer.create_item("table", 1.0, {"a": writer.history["a"][:], "b": writer.history["b"][:]})
            writer.flush()
        drawn = {tuple(step.data[0].item() for step in item) for item in client.sample("table", 50)}
        self.assertEqual(drawn, {(0,), (2, 3, 4)})
        info = client.server_info()["table"]
        self.assertEqual((info.current_size, info.num_unique_samples, info.max_size), (2, 2, 100))

    def test_values_of_every_type_come_back_as_they_were(self):
        client = self.serve(reverb.Table.queue("queue", 100))
        arrays = [np.array([0, 1], name) for name in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")]
        arrays += [np.array([0.5, 1], name) for name in ("float16", "float32", "float64", "complex64", "complex128", "uint64")]
        arrays += [np.zeros((0, 3), np.float32), np.arange(12).reshape(3, 4).T, np.array(7, ">i4"), np.array([b"ab", b"c"])]
        for array in arrays:
            client.insert(array, {"queue": 1.0})
            [[step]] = client.sample("queue")
            np.testing.assert_array_equal(step.data[0], array)
            self.assertEqual(step.data[0].dtype, array.dtype.newbyteorder("="))
            self.assertEqual(step.data[0].shape, array.shape)

    def test_texts_of_any_length_are_bytes_of_utf_8(self):
        client = self.serve(reverb.Table.queue("queue", 100))
        with client.trajectory_writer(3) as writer:
            for text in ("a", "längere", b"bytes"):
                writer.append({"text": text})
            writer.create_item("queue", 1.0, {"text": writer.history["text"][:]})
        [[text]] = [sample.data for sample in client.sample("queue", emit_timesteps=False)]
        self.assertEqual(text.tolist(), [b"a", "längere".encode(), b"bytes"])

    def test_what_cannot_be_stored_is_refused_by_its_type(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        for value, name in ((object(), "object"), (np.array([None]), "object"), (np.datetime64("2020-01-01"), "datetime64")):
            with self.assertRaisesRegex(TypeError, name):
                client.insert(value, {"queue": 1.0})

    def test_structures_are_flattened_as_dm_tree_does(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        client.insert({"b": (1, [2]), "a": Point(x=4, y=3), "c": None or 5}, {"queue": 1.0})
        [[step]] = client.sample("queue")
        self.assertEqual([int(value) for value in step.data], [3, 4, 1, 2, 5])

    def test_columns_have_ranges_of_their_own(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        with client.trajectory_writer(num_keep_alive_refs=5) as writer:
            for step in range(7):
                writer.append({"observation": np.full(4, step, np.float32), "reward": float(step)})
            history = writer.history
            observations, rewards = history["observation"], history["reward"]
            item = {"all": observations[-5:], "odd": rewards[[-4, -2]], "back": rewards[-1:-4:-1], "last": rewards[-1]}
            writer.create_item("queue", 1.0, item)
            with self.assertRaisesRegex(ValueError, "kept no longer"):
                rewards[0]
        [sample] = client.sample("queue", emit_timesteps=False)
        everything, back, last, odd = sample.data
        np.testing.assert_array_equal(everything[:, 0], [2, 3, 4, 5, 6])
        self.assertEqual((back.tolist(), last.shape, last.tolist(), odd.tolist()), ([6, 5, 4], (), 6, [3, 5]))

    def test_a_step_can_come_in_parts(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        with client.trajectory_writer(2) as writer:
            writer.append({"observation": 1}, partial_step=True)
            self.assertEqual(writer.episode_steps, 0)
            writer.create_item("queue", 1.0, {"observation": writer.history["observation"][-1:]})
            writer.flush()
            writer.append({"action": 2})
            self.assertEqual(writer.episode_steps, 1)
            writer.append({"observation": 3, "action": 4})
            writer.create_item("queue", 1.0, {"both": writer.history["action"][:], "first": writer.history["observation"][0]})
        self.assertEqual([array.tolist() for array in values(client, "queue", 2)], [[1], [2, 4]])

    def test_numbers_below_num_keep_alive_refs_expire(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        with client.trajectory_writer(2) as writer:
            writer.append({"x": 1})
            column = writer.history["x"][:]
            for step in (2, 3):
                writer.append({"x": step})
            with self.assertRaisesRegex(RuntimeError, "expired"):
                column.numpy()
            with self.assertRaisesRegex(RuntimeError, "expired"):
                writer.create_item("queue", 1.0, {"x": column})
            writer.end_episode()
            with self.assertRaises(ValueError):
                writer.create_item("queue", 1.0, {"x": writer.history["x"][:]})

    def test_an_item_that_is_not_as_the_signature_says_is_refused(self):
        signature = {"x": reverb.TensorSpec([None, 2], np.float32), "y": reverb.TensorSpec([], np.int64)}
        client = self.serve(reverb.Table.queue("queue", 10, signature=signature))
        with client.trajectory_writer(3) as writer:
            writer.append({"x": np.zeros(2, np.float32), "y": 1, "z": 1.0})
            history = writer.history
            writer.create_item("queue", 1.0, {"x": history["x"][:], "y": history["y"][-1]})
            for wrong, why in (
                ({"x": history["x"][:]}, "1 columns for table 'queue', whose signature has 2"),
                ({"x": history["x"][:], "y": history["y"][:]}, r"column at \('y',\) is int64 \[1\]; .* int64 \[\]"),
                ({"x": history["x"][:], "y": history["z"][-1]}, r"column at \('y',\) is double \[\]"),
            ):
                with self.assertRaisesRegex(ValueError, why):
                    writer.create_item("queue", 1.0, wrong)
        [sample] = client.sample("queue", emit_timesteps=False, unpack_as_table_signature=True)
        self.assertEqual(sample.data["x"].shape, (1, 2))
        self.assertEqual(client.server_info()["queue"].signature, signature)

    def test_a_full_queue_lets_flush_wait_and_items_come_in_their_order(self):
        client = self.serve(reverb.Table.queue("queue", 2))
        writer = client.trajectory_writer(1)
        for step in range(6):
            writer.append([step])
            writer.create_item("queue", 1.0, writer.history[0][-1:])
        writer.flush(block_until_num_items=4)
        with self.assertRaises(reverb.DeadlineExceededError):
            writer.flush(timeout_ms=20)
        self.assertEqual([array.tolist() for array in values(client, "queue", 6)], [[step] for step in range(6)])
        writer.flush()
        writer.close()

    def test_a_table_that_is_not_there_is_named(self):
        client = self.serve(uniform())
        with self.assertRaisesRegex(ValueError, "no table 'tabel'; there are: table"):
            client.insert(1, {"tabel": 1.0})
        with self.assertRaisesRegex(ValueError, "no table 'x'"):
            next(client.sample("x"))


class TablesTest(ReplayTest):
    def test_priorities_are_changed_and_items_deleted_by_their_keys(self):
        table = reverb.Table("table", reverb.selectors.Prioritized(1.0), reverb.selectors.Fifo(), 100, reverb.rate_limiters.MinSize(1))
        client = self.serve(table)
        for value in range(3):
            client.insert(value, {"table": 1.0})
        samples = {int(step.data[0]): step.info for [step] in client.sample("table", 100)}
        self.assertEqual(sorted(samples), [0, 1, 2])
        self.assertEqual({info.probability for info in samples.values()}, {1 / 3})
        client.mutate_priorities("table", updates={samples[0].key: 0.0, samples[1].key: 3.0}, deletes=[samples[2].key])
        [[step]] = client.sample("table")
        self.assertEqual((int(step.data[0]), step.info.priority, step.info.probability, step.info.table_size), (1, 3.0, 1.0, 2))
        client.mutate_priorities("table", updates={samples[2].key: 1.0}, deletes=[samples[2].key])  # It has gone: no error.
        with self.assertRaisesRegex(ValueError, "priority -1"):
            client.mutate_priorities("table", updates={samples[1].key: -1.0})

    def test_a_table_whose_rows_would_take_too_much_drops_its_oldest(self):
        table = uniform(max_size=1000)
        client = self.serve(table, reverb.Table.queue("queue", 1000), bytes_max=1 << 20)
        for value in range(100):
            client.insert(np.full(10_000, value, np.uint8), {"table": 1.0})
        self.assertLess(table.info.num_bytes, 1 << 19)
        self.assertLess(table.info.current_size, 50)
        self.assertGreater(min(int(step.data[0][0]) for [step] in client.sample("table", 100)), 50)
        writer = client.trajectory_writer(1)
        with self.assertRaises(reverb.DeadlineExceededError):
            for value in range(100):
                writer.append([np.zeros(10_000)])
                writer.create_item("queue", 1.0, writer.history[0][-1:])
                writer.flush(timeout_ms=500)

    def test_a_stack_gives_the_newest_first(self):
        client = self.serve(reverb.Table.stack("stack", 5))
        for value in range(3):
            client.insert(value, {"stack": 1.0})
        self.assertEqual([int(array[0]) for array in values(client, "stack", 3)], [2, 1, 0])

    def test_who_samples_waits_for_who_inserts(self):
        client = self.serve(uniform(min_size=2))
        waiting = python_replay.Later(lambda: next(client.sample("table")))
        client.insert(1, {"table": 1.0})
        self.assertFalse(waiting.done)
        client.insert(2, {"table": 1.0})
        self.assertIn(int(waiting.result()[0].data[0]), (1, 2))

    def test_items_of_one_step_may_be_in_several_tables(self):
        client = self.serve(uniform("a"), reverb.Table.queue("b", 10))
        client.insert([5], {"a": 1.0, "b": 2.0})
        for table in ("a", "b"):
            [[step]] = client.sample(table)
            self.assertEqual(int(step.data[0]), 5)

    def test_a_table_says_what_it_is_before_and_while_it_is_served(self):
        table = reverb.Table("table", reverb.selectors.MinHeap(), reverb.selectors.Lifo(), 7, reverb.rate_limiters.MinSize(3), 4)
        before = table.info
        client = self.serve(table)
        served = client.server_info()["table"]
        self.assertEqual(before, table.info)
        self.assertEqual(before, served)
        self.assertTrue(served.sampler_options.HasField("heap") and served.sampler_options.heap.min_heap)
        self.assertTrue(served.remover_options.lifo)
        copy = table.replace(max_size=9)
        self.assertEqual((copy.info.max_size, copy.info.sampler_options), (9, before.sampler_options))

    def test_tables_and_servers_that_cannot_be_are_refused(self):
        for arguments, why in (
            (dict(max_size=0), "max_size"),
            (dict(name=""), "name"),
        ):
            with self.assertRaisesRegex(ValueError, why):
                uniform(**arguments)
        with self.assertRaisesRegex(ValueError, "several tables are named table"):
            reverb.Server([uniform(), uniform()])
        with self.assertRaisesRegex(ValueError, "at least one table"):
            reverb.Server([])
        with self.assertRaisesRegex(ValueError, "min_size is 101, so nothing could ever be sampled of items_max 100"):
            reverb.Server([uniform(min_size=101)])
        with self.assertRaisesRegex(ValueError, "on another host"):
            reverb.Client("example.com:80").server_info()
        with self.assertRaisesRegex(ValueError, "localhost:<port>"):
            reverb.Client("localhost").server_info()


class ProcessesTest(ReplayTest):
    def test_another_process_writes_and_draws(self):
        client = self.serve(reverb.Table.queue("up", 10), reverb.Table.queue("down", 10))
        other = python(
            "client = reverb.Client(sys.argv[1])\n"
            "[[step]] = client.sample('up')\n"
            "client.insert({'twice': step.data[0] * 2}, {'down': 1.0})\n",
            client.server_address,
        )
        client.insert({"value": np.arange(1000)}, {"up": 1.0})
        [[step]] = client.sample("down")
        np.testing.assert_array_equal(step.data[0], np.arange(1000) * 2)
        output(other)

    def test_a_pickled_client_reaches_the_same_server(self):
        client = self.serve(uniform())
        client.insert(3, {"table": 1.0})
        self.assertEqual(pickle.loads(pickle.dumps(client)).server_info()["table"].current_size, 1)

    def test_clients_that_go_leave_nothing_behind(self):
        address = self.serve(uniform(max_size=3), reverb.Table.queue("queue", 1)).server_address

        def use():
            client = reverb.Client(address)
            client.insert({"x": np.zeros(1000), "text": "a"}, {"table": 1.0})
            next(client.sample("table"))
            blocked = client.trajectory_writer(1)
            for step in range(2):
                blocked.append([step])
                blocked.create_item("queue", 1.0, blocked.history[0][-1:])
            blocked.close()

        def held():
            gc.collect()
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        use()
        before = held()
        for _ in range(10):
            use()
        deadline = time.monotonic() + python_replay.PATIENCE_S
        while held() > before and time.monotonic() < deadline:
            time.sleep(0.05)  # The server lets go in its own time.
        self.assertLessEqual(held(), before)

    def test_sockets_lie_where_nobody_else_may_enter(self):
        from menger.replay import addresses

        client = self.serve(uniform())
        path = addresses.socket_of(client.server_address)
        self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)

    def test_a_server_of_a_port_that_is_taken_is_refused(self):
        client = self.serve(uniform())
        with self.assertRaisesRegex(RuntimeError, "another process listens"):
            reverb.Server([uniform()], port=int(client.server_address.split(":")[1]))

    def test_items_come_back_from_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            first = reverb.Server([uniform()], checkpointer=reverb.checkpointers.DefaultCheckpointer(folder))
            client = first.localhost_client()
            client.insert({"x": np.arange(5), "y": "text"}, {"table": 2.0})
            path = client.checkpoint()
            client.insert({"x": np.arange(5), "y": "late"}, {"table": 2.0})
            self.assertTrue(os.path.isdir(path))
            first.stop()
            del first, client
            root = path.rsplit("/", 1)[0]
            again = reverb.Server([uniform()], checkpointer=reverb.platform.checkpointers_lib.DefaultCheckpointer(path=root))
            [[step]] = again.localhost_client().sample("table")
            self.assertEqual((step.data[0].tolist(), step.data[1].item(), step.info.priority), ([0, 1, 2, 3, 4], b"text", 2.0))
            self.assertEqual(step.info.table_size, 1)
            again.stop()

    def test_a_server_that_is_killed_and_comes_back_gets_each_item_once(self):
        with tempfile.TemporaryDirectory() as folder:
            program = (
                "server = reverb.Server([reverb.Table.queue('queue', 100)], port=int(sys.argv[1]) or None,\n"
                "                       checkpointer=reverb.checkpointers.DefaultCheckpointer(sys.argv[2]))\n"
                "print(server.port, flush=True)\n"
                "server.wait()\n"
            )
            server = python(program, 0, folder)
            self.addCleanup(lambda: server.kill())  # Whichever it is then.
            port = int(server.stdout.readline())
            client = reverb.Client(f"localhost:{port}")
            writer = client.trajectory_writer(1)

            def write(steps):
                for step in steps:
                    writer.append([step])
                    writer.create_item("queue", 1.0, writer.history[0][-1:])

            write(range(5))
            writer.flush()
            client.checkpoint()
            server.kill()
            server.communicate()
            write(range(5, 8))
            server = python(program, port, folder)
            self.assertEqual(int(server.stdout.readline()), port)
            writer.flush()
            self.assertEqual([array.tolist() for array in values(client, "queue", 8)], [[step] for step in range(8)])
            writer.close()
            server.kill()
            server.communicate()


class DatasetsTest(ReplayTest):
    def test_trajectories_come_in_batches_and_end_when_nothing_comes(self):
        signature = {"x": reverb.TensorSpec([2], np.int64)}
        client = self.serve(reverb.Table.queue("queue", 10, signature=signature))
        with client.trajectory_writer(2) as writer:
            for step in range(6):
                writer.append({"x": step})
                if step > 0:
                    writer.create_item("queue", 1.0, {"x": writer.history["x"][-2:]})
        dataset = reverb.TrajectoryDataset.from_table_signature(
            client.server_address, "queue", max_in_flight_samples_per_worker=4, rate_limiter_timeout_ms=50
        )
        batches = list(dataset.batch(2, drop_remainder=True))
        self.assertEqual([batch.data["x"].tolist() for batch in batches], [[[0, 1], [1, 2]], [[2, 3], [3, 4]]])
        self.assertEqual(batches[0].info.key.shape, (2,))

    def test_datasets_of_given_types_and_shapes_are_taken_from_and_mapped(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        for value in range(4):
            client.insert((value, float(value)), {"queue": 1.0})
        dataset = reverb.TrajectoryDataset(
            client.server_address, "queue", dtypes=(np.int64, np.float64), shapes=([1], (1,)), max_in_flight_samples_per_worker=1
        )
        doubled = dataset.map(lambda sample: sample.data[0] * 2).batch(3).take(1)
        self.assertEqual([batch.tolist() for batch in doubled], [[[0], [2], [4]]])
        with self.assertRaisesRegex(ValueError, "different structures"):
            reverb.TrajectoryDataset(client.server_address, "queue", {"a": np.int64}, {"b": ()}, 1)

    def test_timesteps_come_one_by_one(self):
        client = self.serve(reverb.Table.queue("queue", 10, signature=(reverb.TensorSpec([2], np.float32),)))
        with client.writer(3) as writer:
            writer.append_sequence((np.arange(6, dtype=np.float32).reshape(3, 2),))
            writer.create_item("queue", 3, 1.0)
        dataset = reverb.TimestepDataset.from_table_signature(client.server_address, "queue", 1, max_samples=1)
        self.assertEqual([step.data[0].tolist() for step in dataset], [[0, 1], [2, 3], [4, 5]])

    def test_a_table_without_a_signature_is_refused(self):
        client = self.serve(uniform())
        with self.assertRaisesRegex(ValueError, "has no signature"):
            reverb.TrajectoryDataset.from_table_signature(client.server_address, "table", 1)
        with self.assertRaisesRegex(ValueError, "max_in_flight_samples_per_worker"):
            reverb.TrajectoryDataset(client.server_address, "table", np.int64, (), 0)


class StructuredTest(ReplayTest):
    def test_items_are_made_by_patterns_and_conditions(self):
        client = self.serve(reverb.Table.queue("pairs", 100), reverb.Table.queue("ends", 100))
        step = reverb.structured.create_reference_step({"a": None, "done": None})
        condition = reverb.structured.Condition
        writer = client.structured_writer(
            [
                reverb.structured.create_config({"a": step["a"][-2:]}, "pairs", [condition.step_index() % 2 == 1]),
                reverb.structured.create_config({"a": step["a"][-1]}, "ends", [condition.data({"a": 0, "done": 0})["done"] == 1]),
            ]
        )
        for number in range(6):
            writer.append({"a": number, "done": number == 4})
        writer.end_episode()
        self.assertEqual([array.tolist() for array in values(client, "pairs", 3)], [[0, 1], [2, 3], [4, 5]])
        self.assertEqual([array.tolist() for array in values(client, "ends", 1)], [4])

    def test_configs_that_cannot_be_are_refused(self):
        client = self.serve(reverb.Table.queue("queue", 10))
        step = reverb.structured.create_reference_step([None])
        for pattern, why in ((step[0][1], "must be below 0"), (step[0][-1:-2], "start < stop"), (step[0][-3::0], "step 0")):
            with self.assertRaisesRegex(ValueError, f"config 0: .*{why}"):
                client.structured_writer([reverb.structured.create_config([pattern], "queue")])
        with self.assertRaisesRegex(ValueError, "At least one config"):
            client.structured_writer([])


if __name__ == "__main__":
    unittest.main(verbosity=2)
