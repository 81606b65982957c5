"""Queueing disciplines and congestion controls that are written in Python."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import lastmile as lm
import pytest

import own
from conftest import ROOT

LINES = {
    "starved": """
duration = "10 s"
[access]
down = { rate = "8 Mbit/s", queue = { kind = "fifo", limit = "50 packets" } }
up = { rate = "512 kbit/s", queue = { kind = "fifo", limit = "50 packets" } }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
[[traffic]]
name = "ping"
kind = "ping"
""",
    "atm": """
duration = "8 s"
[access]
encapsulation = "pppoe-llc"
down = { rate = "2 Mbit/s", queue = { kind = "fifo", limit = "20 packets" } }
up = { rate = "256 kbit/s", queue = { kind = "fifo", limit = "30 packets" }, loss = "1 %" }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
count = 3
[[traffic]]
name = "upload"
kind = "poisson"
direction = "up"
rate = "300 kbit/s"
""",
    "delayed": """
duration = "12 s"
[access]
down = { rate = "20 Mbit/s", delay = "40 ms", queue = { kind = "fifo", limit = "100 packets" }, loss = "0.1 %" }
up = { rate = "1 Mbit/s", queue = { kind = "fifo", limit = "10 packets" } }
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
""",
}
LIMITS = {"starved": (50, 50), "atm": (20, 30), "delayed": (100, 10)}


def results(run: lm.Run) -> dict[str, Any]:
    """The summary, without what a queue of Python does not tell, the name of its kind and its limit, and without the
    number of events: packets that wait in a FIFO of Rust have none."""
    summary = json.loads(run.json())
    del summary["inputs"], summary["events"]
    for link in summary["links"]:
        for unit in ("bytes", "packets", "wire_bytes"):
            del link[f"queue_limit_{unit}"]
        for counter in link["counters"]:
            counter["kind"] = ""
    return dict(summary)


def bare(summary: dict[str, Any]) -> str:
    return json.dumps(summary, indent=1)


def fifos(down: int, up: int, kind: type[own.Fifo] = own.Fifo) -> dict[str, Callable[[], lm.Discipline]]:
    return {"down": lambda: kind(down), "up": lambda: kind(up)}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_fifo_of_python_is_that_of_rust(name: str, seed: int) -> None:
    line = lm.loads(LINES[name]).set("seed", seed)
    rust, python = lm.run(line), lm.run(line, queues=fifos(*LIMITS[name]))
    assert bare(results(rust)) == bare(results(python))
    assert list(rust.series.names) == list(python.series.names)
    for series, entity in rust.series.names:
        assert rust.series.samples(series, entity) == python.series.samples(series, entity)


def test_a_drop_at_the_head_is_that_of_rust() -> None:
    line = lm.loads(LINES["starved"])
    rust = lm.run(line.set("access.up.queue.drop", "head").set("access.down.queue.drop", "head"))
    python = lm.run(line, queues=fifos(50, 50, own.HeadDrop))
    assert bare(results(rust)) == bare(results(python))


@pytest.mark.parametrize("variant", ["reno", "newreno"])
@pytest.mark.parametrize("name", LINES)
def test_a_reno_of_python_is_that_of_rust(name: str, variant: str) -> None:
    line = lm.loads(LINES[name]).set("tcp", {"era": "1999", "variant": variant})
    assert_equal_by_control(line, own.Reno)


@pytest.mark.parametrize("name", LINES)
def test_a_reno_of_python_is_that_of_rust_where_losses_are_found_by_rack(name: str) -> None:
    assert_equal_by_control(lm.loads(LINES[name]).set("tcp.variant", "sack"), own.LinuxReno)


def test_the_guide_has_the_classes_that_are_compared() -> None:
    guide = (ROOT / "docs/guides/your-own-queue.md").read_text()
    for control in (own.Reno, own.LinuxReno):
        assert inspect.getsource(control) in guide


def assert_equal_by_control(line: lm.Scenario, control: Callable[[], lm.CongestionControl]) -> None:
    rust, python = lm.run(line), lm.run(line, congestion={"download": control})
    assert bare(results(rust)) == bare(results(python))
    for series, entity in rust.series.names:
        assert rust.series.samples(series, entity) == python.series.samples(series, entity)


def test_equal_runs_give_equal_bytes_and_say_what_they_used() -> None:
    line = lm.loads(LINES["starved"])
    texts = {lm.run(line, queues={"up": own.Fifo}, congestion={"upload": own.Reno}).json() for _ in range(2)}
    assert len(texts) == 1
    assert json.loads(texts.pop())["inputs"]["set"] == ["queues.up=python:Fifo", "congestion.upload=python:Reno"]


class Held(own.Fifo):
    """Each packet waits 30 ms."""

    def next_ready(self, now: float) -> float:
        return self.packets[0].arrived + 0.03

    def dequeue(self, now: float) -> lm.Packet | None:
        return super().dequeue(now) if now >= self.packets[0].arrived + 0.03 else None


def test_a_queue_may_hold_packets_back() -> None:
    line = lm.loads(LINES["starved"]).set("traffic.0.stop", "1 ms").set("traffic.1.stop", "1 ms")
    plain, held = (lm.run(line, queues={"up": queue}).summary["probes"][0] for queue in (own.Fifo, Held))
    assert held["rtt_s"]["p50"] == pytest.approx(plain["rtt_s"]["p50"] + 0.03, abs=1e-3)


def test_a_mark_reaches_the_sender() -> None:
    class Marker(own.Fifo):
        def dequeue(self, now: float) -> lm.Packet | None:
            packet = super().dequeue(now)
            if packet is not None and now - packet.arrived > 0.02:
                packet.mark()
            return packet

    line = lm.loads(LINES["starved"]).set("tcp.ecn", "classic")
    kinds: set[str] = set()

    class Listening(own.LinuxReno):
        def on_loss(self, loss: lm.Loss) -> int:
            kinds.add(loss.kind)
            return super().on_loss(loss)

    run = lm.run(line, queues={"down": Marker}, congestion={"download": Listening})
    assert "mark" in kinds
    down = next(link for link in run.summary["links"] if link["name"] == "down")
    assert sum(down["drops"].values()) < 20


def test_a_control_may_set_its_rate() -> None:
    class Slow(own.Reno):
        def pacing_rate(self) -> float:
            return 1e6

    run = lm.run(lm.loads(LINES["delayed"]), congestion={"download": Slow})
    flow = next(flow for flow in run.summary["flows"] if flow["name"] == "download")
    assert 0.8e6 < flow["goodput_bps"] < 1.02e6


class Loser(own.Fifo):
    def enqueue(self, packet: lm.Packet, now: float) -> None:
        if packet.number != 20:
            super().enqueue(packet, now)


class Twice(own.Fifo):
    def dequeue(self, now: float) -> lm.Packet | None:
        return self.packets[0] if self.packets else None


class Dropped(own.Fifo):
    def enqueue(self, packet: lm.Packet, now: float) -> None:
        packet.drop()
        self.packets.append(packet)

    def dequeue(self, now: float) -> lm.Packet | None:
        return self.packets.popleft()


class DroppedTwice(own.Fifo):
    def enqueue(self, packet: lm.Packet, now: float) -> None:
        packet.drop()
        packet.drop()


class Inventor(own.Fifo):
    def dequeue(self, now: float) -> Any:
        return "a packet"


class Idle(own.Fifo):
    def dequeue(self, now: float) -> lm.Packet | None:
        return None


class Promise(Idle):
    def next_ready(self, now: float) -> float:
        return now


class Never(Idle):
    def next_ready(self, now: float) -> Any:
        return None


class Unreal(Idle):
    def next_ready(self, now: float) -> float:
        return float("nan")


class NoReason(own.Fifo):
    def enqueue(self, packet: lm.Packet, now: float) -> None:
        packet.drop("bored")


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        (Loser, "Loser.enqueue has lost packet 20: each packet is kept"),
        (Twice, "Twice.dequeue has returned packet 1, which it has returned before"),
        (DroppedTwice, "a packet is dropped once"),
        (Inventor, "Inventor.dequeue has returned str: a packet that was enqueued, or None"),
        (Idle, r"Idle.dequeue has returned None at .* s while it holds 1 packets: return one, or say in next_ready"),
        (Promise, "while it holds 1 packets, and next_ready has promised one by now"),
        (Never, "Never.next_ready has returned None while it holds 1 packets: a time in seconds"),
        (Unreal, "Unreal.next_ready has returned NaN: a time of the run in seconds"),
    ],
)
def test_a_queue_that_breaks_the_contract_ends_the_run(queue: type[own.Fifo], message: str) -> None:
    with pytest.raises(lm.ContractError, match=message):
        lm.run(lm.loads(LINES["starved"]), queues={"up": queue})


def test_reasons_of_ack_regulation_need_a_declaration() -> None:
    class Filter(own.Fifo):
        def enqueue(self, packet: lm.Packet, now: float) -> None:
            for other in [other for other in self.packets if other.flow == packet.flow and other.is_pure_ack]:
                self.packets.remove(other)
                other.drop("ack_filtered")
            super().enqueue(packet, now)

    class Declared(Filter):
        thins_acks = True

    line = lm.loads(LINES["starved"])
    with pytest.raises(lm.ContractError, match='reason "ack_filtered" is for queues with thins_acks = True'):
        lm.run(line, queues={"up": Filter})
    links = lm.run(line, queues={"up": Declared}).summary["links"]
    assert next(link for link in links if link["name"] == "up")["drops"]["ack_filtered"] > 100


def test_reasons_are_named() -> None:
    with pytest.raises(ValueError, match='unknown reason "bored": there are tail, head, aqm'):
        lm.run(lm.loads(LINES["starved"]), queues={"up": NoReason})


def test_a_packet_of_another_queue_is_refused() -> None:
    shared: deque[lm.Packet] = deque()

    class Shared(own.Fifo):
        def __init__(self) -> None:
            super().__init__()
            self.packets = shared

    with pytest.raises(lm.ContractError, match="which is of another queue"):
        lm.run(lm.loads(LINES["starved"]), queues={"up": Shared, "down": Shared})


def test_packets_outlive_the_run_and_do_nothing() -> None:
    kept: list[lm.Packet] = []

    class Keeper(own.Fifo):
        def enqueue(self, packet: lm.Packet, now: float) -> None:
            kept.append(packet)
            super().enqueue(packet, now)

    lm.run(lm.loads(LINES["starved"]), duration="1 s", queues={"up": Keeper})
    gc.collect()
    held = [packet for packet in kept if packet.size > 1000]
    assert held and kept[0].arrived >= 0.0 and not kept[0].mark()
    with pytest.raises(lm.ContractError, match="departed|only within"):
        kept[-1].drop()
    with pytest.raises(TypeError):
        copy.copy(kept[0])
    with pytest.raises(TypeError):
        lm.Packet()


def test_a_packet_cannot_be_dropped_by_another_thread_between_calls() -> None:
    refused: list[Exception] = []
    packets: deque[lm.Packet] = deque()
    over = threading.Event()

    def meddle() -> None:
        while not over.is_set():
            try:
                packets[-1].drop()
            except (IndexError, lm.ContractError) as error:
                refused.append(error)
            time.sleep(0)

    class Open(own.Fifo):
        def enqueue(self, packet: lm.Packet, now: float) -> None:
            packets.append(packet)
            super().enqueue(packet, now)

    thread = threading.Thread(target=meddle)
    thread.start()
    try:
        lm.run(lm.loads(LINES["starved"]), duration="5 s", queues={"up": Open})
    except lm.ContractError:
        # The thread may drop a packet while a method of the queue runs, which the queue then returns.
        pass
    over.set()
    thread.join()
    assert refused


class Enough(Exception):
    pass


@pytest.mark.parametrize("method", ["enqueue", "dequeue"])
def test_an_exception_of_a_queue_ends_the_run(method: str, endless: lm.Scenario) -> None:
    class Raises(own.Fifo):
        calls = 0

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            return self.counted(found) if name == method else found

        def counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
            def inner(*arguments: Any) -> Any:
                self.calls += 1
                if self.calls == 100:
                    raise Enough(method)
                return call(*arguments)

            return inner

    began = time.monotonic()
    with pytest.raises(Enough, match=method):
        lm.run(endless, queues={"up": Raises})
    assert time.monotonic() - began < 5


def test_an_exception_of_a_control_ends_the_run(endless: lm.Scenario) -> None:
    class Raises(own.Reno):
        def on_ack(self, ack: lm.Ack) -> int:
            raise Enough(ack)

    with pytest.raises(Enough):
        lm.run(endless, congestion={"download": Raises})


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (0, "returned 0 bytes: a window has at least a segment, "),
        ("much", "returned str: the window in bytes, or"),
        ((3000, 1), "returned 1 bytes: a window has at least a segment"),
        (None, "returned NoneType: the window"),
        (float("nan"), "returned NaN bytes"),
    ],
)
def test_windows_are_checked(returned: Any, message: str, endless: lm.Scenario) -> None:
    class Odd(own.Reno):
        def on_ack(self, ack: lm.Ack) -> Any:
            return returned

    with pytest.raises(lm.ContractError, match=message):
        lm.run(endless, congestion={"download": Odd})


def test_names_and_objects_are_checked_before_the_run(download: lm.Scenario) -> None:
    with pytest.raises(KeyError, match='no link is called .*"upp".*did you mean \\"up\\"'):
        lm.run(download, queues={"upp": own.Fifo})
    with pytest.raises(KeyError, match="no traffic is called"):
        lm.run(download, congestion={"up": own.Reno})
    with pytest.raises(KeyError, match="does not send over TCP"):
        lm.run(download, congestion={"ping": own.Reno})
    with pytest.raises(lm.ContractError, match="give the class, or a function that makes its object"):
        lm.run(download, queues={"up": own.Fifo()})  # type: ignore[dict-item]
    with pytest.raises(lm.ContractError, match="Reno has no method enqueue: it needs enqueue, dequeue"):
        lm.run(download, queues={"up": own.Reno})  # type: ignore[dict-item]
    with pytest.raises(lm.ContractError, match="Fifo has no method on_ack"):
        lm.run(download, congestion={"download": own.Fifo})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        lm.run(download, queues={"up": lambda: needs()})  # type: ignore[call-arg]


def needs(limit: int) -> own.Fifo:
    return own.Fifo(limit)


def test_a_link_of_cells_keeps_its_queues(at_root: object) -> None:
    line = lm.load("scenarios/atm/sun-epd.toml")
    with pytest.raises(KeyError, match="carries cells, and has a queue for each virtual channel"):
        lm.run(line, duration="1 s", queues={line.links[0]: own.Fifo})
