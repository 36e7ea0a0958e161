// A number with SI prefix and unit, four digits.
const size = Math.abs(value);
if (size === 0) return `0 ${unit}`;
for (const [scale, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]])
  if (size >= scale * 0.9999999) return `${Number((value / scale).toPrecision(4))} ${prefix}${unit}`;
return `${value} ${unit}`;
