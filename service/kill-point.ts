/** Named points at which a crash test ends the process. */

/** Called by a process when it reaches `point`. Does nothing outside crash tests. */
export type KillPointHook<Point extends string = string> = (point: Point) => void

/** Ends the process without any clean-up, as a power cut would, when it reaches `wanted`. */
export const killAt =
  (wanted: string | null): KillPointHook =>
  (point) => {
    if (point === wanted) process.kill(process.pid, 'SIGKILL')
  }
