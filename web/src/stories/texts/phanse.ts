import type { Slider, Story } from "../model";

const upstream = (from: number): Slider => ({
  setting: "up_bps",
  label: "Upstream rate",
  unit: [1e3, "kbit/s"],
  values: [12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128].map((kbps) => kbps * 1e3),
  from,
});
const rate = {
  title: "Upstream rate",
  unit: [1e3, "kbit/s"] as [number, string],
  log: true,
  ticks: [12, 16, 24, 32, 48, 64, 96, 128].map((k) => k * 1e3),
};
const queue: Slider = {
  setting: "queue",
  label: "Queues of modem and DSLAM",
  unit: [1, "packets"],
  values: [10, 20, 50, 100, 200, 500, 1000],
  text: "$ packets",
  from: 1000,
};
const window: Slider = {
  setting: "window_bytes",
  label: "TCP window",
  unit: [1024, "KiB"],
  values: [8192, 16384, 32768, 65535],
  from: 65535,
};

export const phanse: Story = {
  key: "phanse2000",
  title: "ADSL: what cells, headers and an ACK dropper change",
  text: [
    "The thesis simulates downloads over ADSL with 1.544 Mbit/s downstream and 16 to 96 kbit/s upstream. An ADSL line of that time carries ATM cells: 48 bytes of payload in 53 bytes. An ACK of 40 bytes fits one cell; with the headers of PPP it needs two. A slow upstream then carries half as many ACKs.",
    "The thesis compares remedies: receivers that delay ACKs, header compression, the Smart ACK Dropper (SAD), which keeps one ACK of each connection in the queue of the modem, and queues that send ACKs ahead of uploads.",
  ],
  figures: [
    {
      id: "cells",
      title: "One download, with and without ATM",
      about:
        "The downstream is full while the upstream carries an ACK for each segment. Below about 40 kbit/s the download falls with the upstream rate, with cells earlier than without. A queue at the modem that overflows drops ACKs; the ACKs that are left acknowledge more, and the download is faster.",
      across: { param: "up_bps", axis: rate },
      up: { title: "Use of the downstream", unit: [1, "%"] },
      series: [
        { label: "IP without ATM", tables: ["5.1"], figure: "downstream_utilisation_pct" },
        { label: "IP over ATM", tables: ["5.4"], figure: "downstream_utilisation_pct" },
      ],
      table: "5.1",
      settings: {},
      sliders: [upstream(32_000), queue],
      choices: [
        {
          label: "Line",
          options: [
            { label: "without ATM", table: "5.1", series: [0] },
            { label: "over ATM", table: "5.4", series: [1] },
          ],
        },
      ],
      also: [{ figure: "download_time_s", label: "time of 10 MB", unit: [1, "s"] }],
      note: "A point of yours is one run; simulated values are means of ten.",
    },
    {
      id: "delayed-acks",
      title: "Fewer or smaller ACKs",
      about:
        "Several downloads share a 16 kbit/s upstream. A receiver that delays ACKs acknowledges two segments at once. Header compression makes each ACK a few bytes long, and helps more than any delay.",
      across: { param: "delayed_ack_ms", axis: { title: "Delay of ACKs", unit: [1, "ms"] } },
      up: { title: "Use of the downstream", unit: [1, "%"] },
      series: [
        {
          label: "full headers",
          tables: ["5.3"],
          where: { header_compression: false },
          figure: "downstream_utilisation_pct",
        },
        {
          label: "compressed headers",
          tables: ["5.3"],
          where: { header_compression: true },
          figure: "downstream_utilisation_pct",
        },
      ],
      table: "5.3",
      settings: {},
      sliders: [
        {
          setting: "delayed_ack_ms",
          label: "Delay of ACKs",
          unit: [1, "ms"],
          values: [0, 2, 5, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500],
          from: 50,
        },
        { setting: "downloads", label: "Downloads", unit: [1, ""], values: [1, 2, 3, 4, 6, 8, 10], from: 4 },
      ],
      choices: [
        {
          label: "Headers of ACKs",
          options: [
            { label: "full", settings: { header_compression: false }, series: [0] },
            { label: "compressed (RFC 1144)", settings: { header_compression: true }, series: [1] },
          ],
        },
      ],
      also: [{ figure: "segments_per_ack", label: "segments acknowledged by an ACK", unit: [1, ""] }],
      note: "A point of yours is one run; simulated values are means of ten. The thesis does not say how many downloads there were.",
    },
    {
      id: "dropper",
      title: "The Smart ACK Dropper and the modem's queue",
      about:
        "Without the dropper nearly a whole window of ACKs waits in the modem. With it at most one ACK of a connection waits. The published delay without SAD fits a window of 32 KiB better than the stated 64 KB: move the window.",
      across: { param: "up_bps", axis: rate },
      up: { title: "Mean delay in the modem's queue", unit: [1, "s"] },
      series: [
        { label: "no remedy", tables: ["5.8"], where: { sad: false }, figure: "cpe_queue_delay_mean_s" },
        { label: "SAD", tables: ["5.8"], where: { sad: true }, figure: "cpe_queue_delay_mean_s" },
      ],
      table: "5.8",
      settings: {},
      sliders: [upstream(64_000), window],
      choices: [
        {
          label: "Remedy",
          options: [
            { label: "none", settings: { sad: false }, series: [0] },
            { label: "SAD", settings: { sad: true }, series: [1] },
          ],
        },
      ],
      also: [
        { figure: "downstream_throughput_mbps", label: "downstream", unit: [1, "Mbit/s"] },
        { figure: "upstream_throughput_kbps", label: "upstream", unit: [1, "kbit/s"] },
        { figure: "download_time_s", label: "time of 10 MB", unit: [1, "s"] },
      ],
      note: "A point of yours is one run; simulated values are means of ten.",
    },
    {
      id: "schedulers",
      title: "A download beside an upload, with four upstream queues",
      about:
        "In one queue the upload's packets delay the ACKs. Priority for ACKs restores the download and starves the upload. One ACK for each upload packet in turns (custom queueing) serves both.",
      across: {
        title: "Upstream queue",
        categories: [
          { label: "FIFO", where: { sad: false, scheduler: "fifo" } },
          { label: "FIFO, SAD", where: { sad: true, scheduler: "fifo" } },
          { label: "priority, SAD", where: { sad: true, scheduler: "priority, ACKs first" } },
          { label: "turns, SAD", where: { sad: true, scheduler: "custom: one ACK per upstream data packet" } },
        ],
      },
      up: { title: "Downstream, on the wire", unit: [1, "kbit/s"] },
      series: [{ label: "download", tables: ["5.10"], figure: "downstream_throughput_kbps" }],
      table: "5.10",
      settings: {},
      sliders: [
        {
          setting: "upload_window_bytes",
          label: "Window of the upload",
          unit: [1024, "KiB"],
          values: [4380, 8760, 16384, 32768, 65535],
          from: 65535,
        },
        {
          setting: "up_bps",
          label: "Upstream rate",
          unit: [1e3, "kbit/s"],
          values: [32, 48, 64, 96, 128, 256].map((kbps) => kbps * 1e3),
          from: 64_000,
        },
      ],
      choices: [
        {
          label: "Upstream queue",
          options: [
            { label: "FIFO", settings: { sad: false, scheduler: "fifo" } },
            { label: "FIFO, SAD", settings: { sad: true, scheduler: "fifo" } },
            { label: "priority for ACKs, SAD", settings: { sad: true, scheduler: "priority, ACKs first" } },
            { label: "turns, SAD", settings: { sad: true, scheduler: "custom: one ACK per upstream data packet" } },
          ],
        },
      ],
      also: [
        { figure: "download_time_s", label: "time of 10 MB down", unit: [1, "s"] },
        { figure: "upload_time_s", label: "time of 1 MB up", unit: [1, "s"] },
      ],
      note: "A point of yours is one run; simulated values are means of ten.",
    },
  ],
};
