const times = (value: number) => `${value.toFixed(2)}x`;
export const atLeast = (bound: number) => ({
  wanted: `>= ${bound}x`,
  reached: (value: number) => value >= bound,
  shown: times,
});
export const atMost = (bound: number) => ({
  wanted: `<= ${bound}x`,
  reached: (value: number) => value <= bound,
  shown: times,
});
export const below = (bound: number, unit: string, digits = 1) => ({
  wanted: `<= ${bound} ${unit}`,
  reached: (value: number) => value <= bound,
  shown: (value: number) => `${value.toFixed(digits)} ${unit}`,
});
export const thousandRowsPerSecond = (bound: number) => ({
  wanted: `>= ${bound / 1e3}k rows/s`,
  reached: (value: number) => value >= bound,
  shown: (value: number) => `${Math.round(value / 1e3)}k rows/s`,
});
