// How the mouse moves, as a few numbers per page. Positions are forgotten as soon as a stroke has ended.
import { middle, middleSpread, round, sum, variation } from './spread'

type Point = [x: number, y: number, at: number]

// A stroke is a movement without a pause; pieces of fewer points say nothing about how a hand moves. A machine that
// stalls tears a program's way into such pieces, so that it takes more than a stall to end one. A hand's pause within
// only adds to what it varies.
const PAUSE_MS = 300
const POINTS_MIN = 5
const LENGTH_MIN = 60
const STROKES_MAX = 60
// Directions are taken between points this far apart, because positions are whole pixels: closer together,
// the rounding alone bends the straightest line.
const SPACING = 12
const BINS = 12
// Fast mice report every millisecond, in steps of one or two pixels that all look the same. Speeds and steps are
// taken over this time, where enough points are left.
const TICK_MS = 7
const TICKS_MIN = 8

interface Stroke {
  turn: number
  deviation: number
  speed: number
  even: number
  step: number
  timer: number
}

export const mouse = () => {
  let stroke: Point[] = []
  let strokes: Stroke[] = []
  let turns: number[] = new Array(BINS).fill(0)
  let turnCount = 0

  const finish = (): void => {
    const points = stroke
    stroke = []
    const first = points[0]
    const last = points[points.length - 1]
    if (!first || !last || points.length < POINTS_MIN) return
    const speeds: number[] = []
    const pauses: number[] = []
    const steps: number[] = []
    const spaced: Point[] = [first]
    let length = 0
    let before = first
    const ticks = [first]
    for (const point of points) if (point[2] - ticks[ticks.length - 1]![2] >= TICK_MS) ticks.push(point)
    for (const point of (ticks.length < TICKS_MIN ? points : ticks).slice(1)) {
      const way = Math.hypot(point[0] - before[0], point[1] - before[1])
      const took = point[2] - before[2]
      length += way
      steps.push(way)
      if (took > 0) {
        speeds.push(way / took)
        pauses.push(took)
      }
      const mark = spaced[spaced.length - 1] as Point
      if (Math.hypot(point[0] - mark[0], point[1] - mark[1]) >= SPACING) spaced.push(point)
      before = point
    }
    if (length < LENGTH_MIN || spaced.length < 4 || speeds.length < 3) return
    let turned = 0
    for (let at = 2; at < spaced.length; at++) {
      const [a, b, c] = [spaced[at - 2], spaced[at - 1], spaced[at]] as [Point, Point, Point]
      let turn = Math.atan2(c[1] - b[1], c[0] - b[0]) - Math.atan2(b[1] - a[1], b[0] - a[0])
      if (turn > Math.PI) turn -= 2 * Math.PI
      if (turn < -Math.PI) turn += 2 * Math.PI
      turned += Math.abs(turn)
      // The bins are narrow around straight ahead, where strokes differ most.
      const bin = Math.floor((Math.cbrt(turn / Math.PI) + 1) * (BINS / 2))
      turns[Math.min(BINS - 1, bin)]!++
      turnCount++
    }
    const chord = Math.hypot(last[0] - first[0], last[1] - first[1])
    const deviation = Math.max(
      ...points.map((point) =>
        Math.abs((last[0] - first[0]) * (first[1] - point[1]) - (first[0] - point[0]) * (last[1] - first[1])),
      ),
    )
    strokes.push({
      turn: turned / (spaced.length - 2),
      deviation: chord > 1 ? deviation / chord / chord : 1,
      speed: variation(speeds),
      even: middleSpread(speeds),
      step: middleSpread(steps),
      timer: variation(pauses),
    })
    if (strokes.length > STROKES_MAX) strokes.shift()
  }

  return {
    move(x: number, y: number, at: number): void {
      const last = stroke[stroke.length - 1]
      if (last && at - last[2] > PAUSE_MS) finish()
      stroke.push([x, y, at])
      if (stroke.length > 400) finish()
    },
    finish,
    signals(): Record<string, unknown> {
      if (!strokes.length) return {}
      const of = (name: keyof Stroke): number => round(middle(strokes.map((each) => each[name])))
      const shares = turns.filter(Boolean).map((count) => count / turnCount)
      return {
        mouseEntropy: round(-sum(shares.map((share) => share * Math.log(share))) / Math.log(BINS)) + 0,
        mouse: {
          strokes: strokes.length,
          turn: of('turn'),
          deviation: of('deviation'),
          speedVariation: of('speed'),
          speedSpread: of('even'),
          stepSpread: of('step'),
          timerVariation: of('timer'),
        },
      }
    },
    reset(): void {
      stroke = []
      strokes = []
      turns = new Array(BINS).fill(0)
      turnCount = 0
    },
  }
}
