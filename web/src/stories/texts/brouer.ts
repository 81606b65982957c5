import type { Story } from "../model";

export const brouer: Story = {
  key: "brouer2005",
  title: "Who owns the queue: a measured ADSL line and a middlebox",
  text: [
    "The thesis measures ADSL lines that a dormitory shares. The modem has a large queue in front of the slow upstream. A few uploads fill it, and every packet of every user, ACKs included, waits for seconds.",
    "The remedy moves the queue: a middlebox in front of the modem sends slightly less than the line carries, so that the modem's queue stays empty and the middlebox decides who waits. This works only if the middlebox knows what each packet costs on the line. ADSL carries cells, and a packet of 40 bytes takes 106 bytes on this one. The author's exact accounting became part of Linux.",
  ],
  figures: [
    {
      id: "uploads",
      title: "Every upload adds its window to the delay",
      about:
        "Each upload keeps its window in the modem's queue. The round trip grows by each window until the modem's buffer is full. The buffer of the simulation is inferred from this figure, so the level at the right is an assumption, and the slope is a result.",
      across: { param: "uploads", axis: { title: "Uploads at once", unit: [1, ""] } },
      up: { title: "Longest round trip", unit: [1e3, "s"] },
      series: [
        {
          label: "uploads with small windows",
          tables: ["fig-3.7", "fig-3.8"],
          figure: "rtt_max_ms_about",
          named: { "fig-3.7": "rtt_max_ms" },
        },
      ],
      table: "fig-3.8",
      settings: {},
      sliders: [
        {
          setting: "uploads",
          label: "Uploads",
          unit: [1, ""],
          values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19],
          from: 5,
        },
        {
          setting: "window",
          label: "Window of each",
          unit: [1, "bytes"],
          values: [4500, 9375, 12500, 18750, 25000, 37500, 63712],
          from: 18750,
        },
      ],
      choices: [],
      also: [{ figure: "rtt_mean_ms", label: "mean round trip", unit: [1, "ms"] }],
      note: "A point of yours is one run of 120 s; simulated values are of ten.",
    },
    {
      id: "starvation",
      title: "A download before and during an upload",
      about:
        "The ACKs of the download wait behind the upload. The download then carries one window each round trip, whatever its line could carry: an 8 Mbit/s line is no faster.",
      across: {
        title: "",
        categories: [
          { label: "download alone", where: { phase: "download only" } },
          { label: "with one upload", where: { phase: "with one upload" } },
        ],
      },
      up: { title: "Download, IP bytes", unit: [1, "kbit/s"] },
      series: [{ label: "download", tables: ["fig-3.2"], figure: "downstream_throughput_kbps_about" }],
      table: "fig-3.2",
      settings: {},
      sliders: [],
      choices: [
        {
          label: "Phase",
          options: [
            { label: "with one upload", settings: { phase: "with one upload" } },
            { label: "download alone", settings: { phase: "download only" } },
          ],
        },
        {
          label: "Line",
          options: [
            { label: "2 Mbit/s, 512 kbit/s" },
            { label: "8 Mbit/s, 512 kbit/s", settings: { line: "8 Mbit/512 kbit" } },
          ],
        },
      ],
      note: "A point of yours is one run; simulated values are means of ten.",
    },
    {
      id: "small-packets",
      title: "A shaper that counts IP bytes, and small packets",
      about:
        "The naive middlebox counts IP bytes and leaves a margin for full-size packets. Small packets need far more cells than it thinks: with 100 of them a second the queue grows in the modem again. Move their rate to find where the margin ends.",
      across: {
        title: "",
        categories: [
          { label: "upload alone", where: { phase: "upload only, 60-120 s" } },
          { label: "with small packets", where: { phase: "upload + 100 UDP packets/s, 120-240 s" } },
        ],
      },
      up: { title: "Longest delay of the upload's class", unit: [1, "ms"] },
      series: [
        { label: "shaper at 450 kbit/s of IP", tables: ["fig-6.1"], figure: "class_1_30_latency_ms_bound_about" },
      ],
      table: "fig-6.1",
      settings: { phase: "upload + 100 UDP packets/s, 120-240 s" },
      sliders: [
        {
          setting: "small_packets_per_s",
          label: "Small packets",
          unit: [1, "packets/s"],
          values: [5, 10, 20, 30, 40, 50, 75, 100, 150, 200],
          from: 50,
        },
      ],
      choices: [
        {
          label: "Shaper counts",
          options: [{ label: "IP bytes (naive)" }, { label: "cells (exact)", settings: { shaper: "exact" } }],
        },
      ],
      note: "A point of yours is one run; simulated values are of ten. The publication gives about 500 ms as the bound with the upload alone, and no number with small packets.",
    },
    {
      id: "hysteresis",
      title: "HTB without hysteresis",
      about:
        "HTB, the kernel's shaper, saves work by a coarse check of its token buckets (hysteresis). Without it interactive packets wait less. The timer of the kernel sets how evenly the shaper sends.",
      across: {
        title: "",
        categories: [
          { label: "with hysteresis", where: { htb_hysteresis: true } },
          { label: "without", where: { htb_hysteresis: false } },
        ],
      },
      up: { title: "Round trip of interactive packets", unit: [1, "ms"] },
      series: [
        { label: "mean", tables: ["fig-7.3"], figure: "latency_mean_ms" },
        { label: "longest", tables: ["fig-7.3"], figure: "latency_max_ms" },
      ],
      table: "fig-7.3",
      settings: {},
      sliders: [
        {
          setting: "timer_hz",
          label: "Kernel timer",
          unit: [1, "Hz"],
          values: [50, 100, 200, 250, 500, 1000, 1500],
          from: 100,
        },
      ],
      choices: [
        {
          label: "Hysteresis",
          options: [
            { label: "off", settings: { htb_hysteresis: false }, series: [0, 1] },
            { label: "on", settings: { htb_hysteresis: true }, series: [0, 1] },
          ],
        },
      ],
      also: [{ figure: "share_within_35ms_pct", label: "within 35 ms", unit: [1, "%"] }],
      note: "A point of yours is one run of 60 s; simulated values are of ten.",
    },
  ],
};
