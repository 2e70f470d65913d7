/** Whether the relayer lanes of this process make progress, for its readiness. */

import type { Clock } from '../../service/clock.ts'

/** `waiting`: something waits to be signed or mined. */
export type LaneProgress = 'idle' | 'waiting'

interface LaneState {
  /** Lease under which the lane runs; a different lease starts from zero. */
  readonly token: number
  /** Since when it has waited without a receipt; null while it is idle. */
  waitingSince: number | null
  /** The first and the last revert since its last success; null without one. */
  reverts: { readonly since: number; readonly until: number } | null
}

export interface LaneWatchPorts {
  readonly clock: Pick<Clock, 'now'>
  /** A lane that waits for so long without a receipt, or whose transactions only revert for so long, is stalled. */
  readonly stallMs: number
}

/** Settlement lanes: the exchange decides what they send, so a series of reverts shows a fault, such as a key without its role. */
const SETTLEMENT = /^m\d+$/

export class LaneWatch {
  readonly #ports: LaneWatchPorts
  readonly #lanes = new Map<string, LaneState>()
  readonly #isRun = new Map<string, () => boolean>()

  constructor(ports: LaneWatchPorts) {
    this.#ports = ports
  }

  /** `isRun`: whether this process owns the lane's lease. A lane that another process runs is not stalled here. */
  add(lane: string, isRun: () => boolean): void {
    this.#isRun.set(lane, isRun)
  }

  /** This process runs the lane under the lease with this token. */
  started(lane: string, token: number): void {
    if (this.#lanes.get(lane)?.token === token) return
    this.#lanes.set(lane, { token, waitingSince: null, reverts: null })
  }

  /** Another process may run the lane. */
  released(lane: string): void {
    this.#lanes.delete(lane)
  }

  /** A pass over the lane has ended. A pass that failed counts as `waiting`. */
  passed(lane: string, progress: LaneProgress): void {
    const state = this.#lanes.get(lane)
    if (state === undefined) return
    state.waitingSince = progress === 'idle' ? null : (state.waitingSince ?? this.#ports.clock.now())
  }

  /** A transaction of the lane has a receipt. */
  ended(lane: string, succeeded: boolean): void {
    const state = this.#lanes.get(lane)
    if (state === undefined) return
    const now = this.#ports.clock.now()
    if (state.waitingSince !== null) state.waitingSince = now
    if (succeeded) state.reverts = null
    else if (SETTLEMENT.test(lane)) state.reverts = { since: state.reverts?.since ?? now, until: now }
  }

  /** The names of the stalled lanes. */
  stalled(): readonly string[] {
    const { clock, stallMs } = this.#ports
    const now = clock.now()
    const isStalled = ({ waitingSince, reverts }: LaneState): boolean =>
      (waitingSince !== null && now - waitingSince >= stallMs) ||
      (reverts !== null && reverts.until - reverts.since >= stallMs)
    const isRun = (lane: string): boolean => this.#isRun.get(lane)?.() ?? true
    return [...this.#lanes].filter(([lane, state]) => isRun(lane) && isStalled(state)).map(([lane]) => lane)
  }
}
