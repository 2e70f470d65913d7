/** What the dead-man switches read and write. */
import type { Fence } from '../../db/fence.ts'
import type { MarketId, Millis, UserId } from '../../domain/units.ts'

/** A dead-man switch that has fired: what the account had open at `firedAt` is to be cancelled. */
export interface FiredSwitch {
  readonly account: UserId
  readonly firedAt: Millis
}

export interface SwitchStore {
  /** Disarms every switch that is due and keeps it as fired. One that is armed anew meanwhile is not due. */
  fire(fence: Fence, now: Millis): Promise<void>
  /** Those that are not seen through, the oldest first, at most some hundreds. */
  fired(): Promise<readonly FiredSwitch[]>
  markets(): Promise<readonly MarketId[]>
  /** Cancels in one market what was accepted before each switch fired. Returns the number of orders. Safe to repeat. */
  cancel(fence: Fence, marketId: MarketId, fired: readonly FiredSwitch[], at: Millis): Promise<number>
  forget(fence: Fence, fired: readonly FiredSwitch[]): Promise<void>
  /** When the next armed switch is due; null where none is armed. */
  nextAt(): Promise<Millis | null>
}
