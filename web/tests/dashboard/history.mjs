/** A history in the form of the server: crates/dashboard/src/history.rs. */
export function encoded(times, columns, marks) {
  const keys = Object.keys(columns).map((label) => ["up", "rate", label]);
  const head = JSON.stringify({ reports: times.length, columns: keys, marks });
  const padded = head.padEnd(Math.ceil((head.length + 4) / 8) * 8 - 4);
  const size = 4 + padded.length + times.length * (8 + 4 * Object.keys(columns).length);
  const bytes = new ArrayBuffer(size);
  const view = new DataView(bytes);
  view.setUint32(0, padded.length, true);
  new Uint8Array(bytes).set(new TextEncoder().encode(padded), 4);
  let offset = 4 + padded.length;
  for (const time of times) {
    view.setFloat64(offset, time, true);
    offset += 8;
  }
  for (const value of Object.values(columns).flat()) {
    view.setFloat32(offset, value, true);
    offset += 4;
  }
  return bytes;
}
