// Numbers in a form for people. An unknown value is a dash.

const NONE = "–";
const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** 1234567 as "1,234,567"; below a hundred with three digits. */
export function number(value) {
  if (!known(value)) return NONE;
  return Math.abs(value) >= 100 ? whole.format(value) : fine.format(value);
}

/** 1234567 as "1.23 M", where there is little room. */
export function short(value) {
  if (!known(value)) return NONE;
  return scaled(value, ["", " k", " M", " G", " T"]);
}

/** 1234567 as "1.23 MB"; a kilobyte is 1000 bytes. */
export function bytes(value) {
  if (!known(value)) return NONE;
  return scaled(value, [" B", " kB", " MB", " GB", " TB"]);
}

function scaled(value, units) {
  let step = 0;
  let rest = value;
  while (Math.abs(rest) >= 999.5 && step < units.length - 1) {
    rest /= 1000;
    step += 1;
  }
  return fine.format(rest) + units[step];
}

/** 200 as "3 min 20 s"; below a minute with one digit after the point, below a second as ms. */
export function seconds(value) {
  if (!known(value)) return NONE;
  if (value < 0) return `−${seconds(-value)}`;
  if (value === 0) return "0 s";
  if (value < 0.9995) return `${fine.format(value * 1000)} ms`;
  if (value < 59.95) return `${Number(value.toFixed(1))} s`;
  return pairOf(Math.round(value));
}

function pairOf(total) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => total >= size);
  const [name, size] = units[first];
  const head = `${whole.format(Math.floor(total / size))} ${name}`;
  if (first === units.length - 1) return head;
  const [small, unit] = units[first + 1];
  const rest = Math.floor((total % size) / unit);
  return rest ? `${head} ${rest} ${small}` : head;
}

/** 0.314 as "31.4 %". A share just below one is never rounded up to it. */
export function share(value) {
  if (!known(value)) return NONE;
  const percent = value * 100;
  const cut = value > 0.99 ? Math.floor(percent * 100 + 1e-6) / 100 : Math.round(percent * 10) / 10;
  return `${cut} %`;
}

const UNITS = {
  bytes,
  seconds,
  share,
  "rows/s": (value) => rate(value),
};

/** The value of a metric in its unit; texts as they are. */
export const inUnit = (value, unit) =>
  typeof value === "number" ? (UNITS[unit] ?? number)(value) : text(value);

/** Rows a second. */
export const rate = (value) => (known(value) ? `${short(value)}/s` : NONE);

/** A text from the server, or a dash. */
export const text = (value) => ((value ?? "") === "" ? NONE : `${value}`);

/** A moment (epoch seconds) as the clock of the reader shows it. */
export function clock(moment, withSeconds = true) {
  const options = { hour: "2-digit", minute: "2-digit", hour12: false };
  if (withSeconds) options.second = "2-digit";
  return new Date(moment * 1000).toLocaleTimeString("en-GB", options);
}

/** A text cut to at most so many characters. */
export const clipped = (value, most) =>
  value.length > most ? `${value.slice(0, most - 1)}…` : value;
