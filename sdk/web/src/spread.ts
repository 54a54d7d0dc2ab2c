// Small statistics. Numbers leave the browser rounded: three digits say all that rules ask.

export const round = (value: number): number => Math.round(value * 1000) / 1000

export const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)

/** Coefficient of variation: standard deviation divided by mean. */
export const variation = (values: number[]): number => {
  const mean = sum(values) / values.length
  return mean > 0 ? Math.sqrt(sum(values.map((value) => (value - mean) ** 2)) / values.length) / mean : 0
}

/** The range of the middle half, as a share of the median: what a stall of the machine does not touch. */
export const middleSpread = (values: number[]): number => {
  const sorted = [...values].sort((one, other) => one - other)
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] as number
  return at(0.5) > 0 ? (at(0.75) - at(0.25)) / at(0.5) : 0
}

/** The value in the middle of a list that is not empty. */
export const middle = (values: number[]): number =>
  [...values].sort((one, other) => one - other)[values.length >> 1] as number
