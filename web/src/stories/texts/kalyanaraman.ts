import type { Slider, Story } from "../model";

const upstream = (from: number): Slider => ({
  setting: "up_bps",
  label: "Upstream rate",
  unit: [1e3, "kbit/s"],
  values: [32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 784, 1024].map((kbps) => kbps * 1e3),
  from,
});
const window: Slider = {
  setting: "window_bytes",
  label: "TCP window",
  unit: [1024, "KiB"],
  values: [8, 16, 32, 64, 128, 256, 512, 1024].map((kib) => kib * 1024),
  from: 65536,
};
const rate = {
  title: "Upstream rate",
  unit: [1e3, "kbit/s"] as [number, string],
  log: true,
  ticks: [32, 64, 128, 256, 512, 1024].map((k) => k * 1e3),
};
const note = "A point of yours is one run of 30 s; simulated values are means of runs of 100 s.";

export const kalyanaraman: Story = {
  key: "kalyanaraman1999",
  title: "A fast line is only as fast as its ACKs",
  text: [
    "A TCP receiver confirms what it received with small packets, the acknowledgements (ACKs). The sender sends new data when ACKs arrive. On a line with a fast downstream and a slow upstream, the ACKs of a download share the slow upstream. If it cannot carry them all, the download slows down, although the downstream is empty.",
    "The paper calls the ratio k: the rates' ratio divided by the ratio of packet to ACK size. Above k = 1 the upstream limits the download. The paper proposes three remedies. A Smart ACK Dropper (SAD) keeps only the newest ACK of each connection in the upstream queue, because each ACK includes all earlier ones. An ACK regenerator creates the dropped ACKs anew beyond the slow link. Two classes give ACKs and upload packets a share of the upstream each.",
  ],
  figures: [
    {
      id: "asymmetry",
      title: "One download, without and with the ACK dropper",
      about:
        "Without a remedy the download falls with the upstream rate. With SAD the slow upstream carries fewer ACKs, each worth more data. Delayed ACKs (one ACK for two segments) halve the need, and turn the verdict of the first table.",
      across: { param: "up_bps", axis: rate },
      up: { title: "Goodput of the download", unit: [1, "Mbit/s"], log: true, ticks: [1, 2, 4, 8] },
      series: [
        { label: "no remedy", tables: ["1"], figure: "downstream_throughput_mbps" },
        { label: "SAD", tables: ["2"], figure: "downstream_throughput_mbps" },
      ],
      table: "1",
      settings: { duration_s: 30 },
      sliders: [upstream(128_000), window],
      choices: [
        {
          label: "Remedy",
          options: [
            { label: "none", table: "1", series: [0] },
            { label: "SAD", table: "2", series: [1] },
          ],
        },
        {
          label: "ACKs",
          options: [{ label: "for each segment" }, { label: "delayed", settings: { delayed_ack: "100 ms" } }],
        },
      ],
      also: [{ figure: "segments_per_ack", label: "segments acknowledged by an ACK", unit: [1, ""] }],
      note,
    },
    {
      id: "both-ways",
      title: "A download and an upload in one queue",
      about:
        "The upload fills the upstream queue, and ACKs wait behind its packets. The download collapses even where k is below 1. A shorter upstream queue drops upload packets earlier and leaves the download much more.",
      across: { param: "up_bps", axis: rate },
      up: { title: "Goodput", unit: [1, "kbit/s"], log: true },
      series: [
        { label: "download", tables: ["4"], figure: "downstream_throughput_kbps" },
        { label: "upload", tables: ["4"], figure: "upstream_throughput_kbps" },
      ],
      table: "4",
      settings: { duration_s: 30 },
      sliders: [
        upstream(256_000),
        {
          setting: "up_queue",
          label: "Upstream queue",
          unit: [1, "packets"],
          values: [5, 10, 20, 50, 100, 200, 500, 1000],
          from: 1000,
        },
      ],
      choices: [{ label: "Marked", options: [{ label: "both transfers", series: [0, 1] }] }],
      note,
    },
    {
      id: "regenerator",
      title: "Regenerated ACKs",
      about:
        "The regenerator creates R ACKs for each one that was dropped. In the paper throughput grows with R. Here R = 1 already fills the line with a window of 64 KiB; larger windows and a short downstream queue show losses from the bursts.",
      across: {
        param: "regeneration_factor",
        axis: { title: "Regeneration factor R", unit: [1, ""], ticks: [1, 2, 3, 4, 5, 6] },
      },
      up: { title: "Goodput of the download", unit: [1, "Mbit/s"] },
      series: [{ label: "SAD and regenerator", tables: ["3"], figure: "downstream_throughput_mbps" }],
      table: "3",
      settings: { duration_s: 30 },
      sliders: [
        { setting: "regeneration_factor", label: "Factor R", unit: [1, ""], values: [1, 2, 3, 4, 5, 6], from: 1 },
        window,
        {
          setting: "down_queue",
          label: "Downstream queue",
          unit: [1, "packets"],
          values: [10, 20, 30, 50, 100, 200, 500, 1000],
          from: 50,
        },
      ],
      choices: [],
      note,
    },
    {
      id: "classes",
      title: "Two classes: the upload's share G",
      about:
        "With a class for ACKs and a class for packets, the download keeps a rate while the upload runs. G is the packets' share of the upstream. In the paper's table the download rises with G, though its text speaks of a cost of 20 to 50 %; here the upload's share is what the ACKs lose.",
      across: { param: "G", axis: { title: "Share of upload packets G", unit: [0.01, "%"] } },
      up: { title: "Goodput of the download", unit: [1, "Mbit/s"] },
      series: [
        { label: "64 kbit/s upstream", tables: ["5"], where: { up_bps: 64000 }, figure: "downstream_throughput_mbps" },
        {
          label: "640 kbit/s upstream",
          tables: ["5"],
          where: { up_bps: 640000 },
          figure: "downstream_throughput_mbps",
        },
      ],
      table: "5",
      settings: { duration_s: 30 },
      sliders: [
        {
          setting: "G",
          label: "Share G",
          unit: [0.01, "%"],
          values: [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
          from: 0.5,
        },
      ],
      choices: [
        {
          label: "Upstream",
          options: [
            { label: "64 kbit/s", settings: { up_bps: 64000 }, series: [0] },
            { label: "640 kbit/s", settings: { up_bps: 640000 }, series: [1] },
          ],
        },
        {
          label: "Classes",
          options: [
            { label: "borrow unused capacity" },
            { label: "keep to their shares", settings: { borrow: false } },
          ],
        },
      ],
      also: [{ figure: "upstream_throughput_kbps", label: "upload", unit: [1, "kbit/s"] }],
      note,
    },
  ],
};
