import type { Slider, Story } from "../model";

const vcs: Slider = {
  setting: "vcs",
  label: "Connections (VCs)",
  unit: [1, ""],
  values: [5, 10, 15, 20, 25, 30, 35, 40],
  from: 15,
};
const buffer: Slider = {
  setting: "switch_buffer_cells",
  label: "Switch buffer",
  unit: [1, "cells"],
  values: [250, 500, 1000, 2000, 4000],
  from: 1000,
};
const note = "A point of yours is one run of 20 s; simulated values are means of ten.";
const ratio = { title: "Goodput to input", unit: [1, ""] as [number, string] };
const carried = {
  figure: "link23_goodput_pct",
  label: "bottleneck used by complete packets",
  unit: [1, "%"] as [number, string],
};

export const sun: Story = {
  key: "sun1998",
  title: "TCP over ATM: which cells should a full switch drop?",
  text: [
    "ATM cuts each packet into cells of 48 bytes. A switch that drops one cell of a packet makes all its other cells useless, but they still take capacity. Early Packet Discard (EPD) drops whole packets when its queue passes a threshold. The thesis proposes Single Packet Discard (SPD), which drops one packet of a connection with cells in a congested queue, and no other of that connection until its cells have left.",
    "Fifteen to forty TCP connections share a 10 Mbit/s link. The measure of the thesis is the ratio of goodput to input: which share of the cells that reached the bottleneck arrived in complete packets.",
  ],
  figures: [
    {
      id: "threshold",
      title: "The threshold of SPD",
      about:
        "The thesis finds a peak at about one packet of cells for each connection, and a fall on both sides. Here the ratio stays high. It misleads: at some thresholds nearly all connections wait for their timers, few packets are dropped, and the link is idle. The readout of your point shows both.",
      across: { param: "spd_threshold_cells", axis: { title: "SPD threshold of a connection", unit: [1, "cells"] } },
      up: ratio,
      series: [
        { label: "15 VCs", tables: ["5.1"], figure: "goodput_to_input" },
        { label: "25 VCs", tables: ["5.3"], figure: "goodput_to_input" },
        { label: "40 VCs", tables: ["5.6"], figure: "goodput_to_input" },
      ],
      table: "5.1",
      settings: {},
      sliders: [
        {
          setting: "spd_threshold_cells",
          label: "SPD threshold",
          unit: [1, "cells"],
          values: [5, 10, 15, 18, 20, 22, 25, 30, 35, 40, 45, 47, 50, 54, 60],
          from: 30,
        },
        buffer,
      ],
      choices: [
        {
          label: "Connections",
          options: [
            { label: "15", table: "5.1", series: [0] },
            { label: "25", table: "5.3", series: [1] },
            { label: "40", table: "5.6", series: [2] },
          ],
        },
      ],
      also: [carried],
      note,
    },
    {
      id: "epd",
      title: "SPD and EPD, 15 connections",
      about:
        "In the thesis the worst value of SPD beats the best of EPD. Here all three lie close together by the ratio, and EPD carries more.",
      across: { param: "epd_threshold_cells", axis: { title: "Threshold of the queue", unit: [1, "cells"] } },
      up: ratio,
      series: [
        { label: "EPD", tables: ["5.8"], where: { vcs: 15 }, figure: "goodput_to_input_epd_aggregate" },
        { label: "SPD", tables: ["5.8"], where: { vcs: 15 }, figure: "goodput_to_input_spd" },
        { label: "EPD for each VC", tables: ["5.8"], where: { vcs: 15 }, figure: "goodput_to_input_epd_per_vc" },
      ],
      table: "5.8",
      settings: {},
      sliders: [
        {
          setting: "epd_threshold_cells",
          label: "Threshold",
          unit: [1, "cells"],
          values: [400, 500, 600, 700, 800, 900, 1000],
          from: 600,
        },
        vcs,
      ],
      choices: [
        {
          label: "Discard",
          options: [
            { label: "EPD", series: [0] },
            { label: "SPD", series: [1] },
            { label: "EPD for each VC", series: [2] },
          ],
        },
      ],
      note,
    },
    {
      id: "more-connections",
      title: "SPD and EPD, 25 connections",
      about:
        "With more connections each has less of the buffer than a window needs. The thesis finds SPD and EPD about level.",
      across: { param: "epd_threshold_cells", axis: { title: "Threshold of the queue", unit: [1, "cells"] } },
      up: ratio,
      series: [
        { label: "EPD", tables: ["5.10"], figure: "goodput_to_input_epd_aggregate" },
        { label: "SPD", tables: ["5.10"], figure: "goodput_to_input_spd" },
        { label: "EPD for each VC", tables: ["5.10"], figure: "goodput_to_input_epd_per_vc" },
      ],
      table: "5.10",
      settings: {},
      sliders: [
        {
          setting: "epd_threshold_cells",
          label: "Threshold",
          unit: [1, "cells"],
          values: [400, 500, 600, 700, 800, 900, 1000],
          from: 600,
        },
        { ...vcs, from: 25 },
      ],
      choices: [
        {
          label: "Discard",
          options: [
            { label: "EPD", series: [0] },
            { label: "SPD", series: [1] },
            { label: "EPD for each VC", series: [2] },
          ],
        },
      ],
      note,
    },
  ],
};
