/**
 * Winds down an ended market: reports insolvent accounts, and after their window claims for every other account. Open
 * positions are the only progress, so that a new owner can continue.
 */
import type { Fence } from '../../db/fence.ts'
import { valueAt } from '../../domain/risk/wind-down.ts'
import type { MarketId, Millis, Price, UserId } from '../../domain/units.ts'
import { type Clock, elapsed } from '../../service/clock.ts'
import type { Logger } from '../../service/logger.ts'
import type { Calls, Chain } from '../ports.ts'
import type { RelayerLane } from '../relayer/ports.ts'
import type { EndingMarket, EndingStore, OpenPosition } from './ports.ts'
import { claimPurpose, deficitsPurpose } from './purposes.ts'
import type { Send } from './sender.ts'

export interface PayoutPorts {
  readonly store: EndingStore
  readonly chain: Pick<Chain, 'windDown'>
  readonly calls: Pick<Calls, 'reportInsolvent' | 'claim'>
  readonly clock: Clock
  readonly logger: Logger
}

/** Positions per pass. */
const PAGE = 500
/** Accounts of one report: a cold position each. */
const DEFICITS_PER_TRANSACTION = 100
/** Before a claim that has reverted is sent again: in a pause of the bank all of them revert. */
const CLAIM_RETRY_MS = 600_000
/** Before deficits whose report has reverted are reported again, for example because a fork had taken the market's end back. */
const REPORT_RETRY_MS = 20_000
/** Between two passes over all positions of a market that leave nothing to send. */
const REST_MS = 10_000

const START = 0 as UserId

/** One pass over a market that has ended. Sends at most `capacity` transactions and returns how many it has sent. */
export type VisitEnded = (
  fence: Fence,
  market: EndingMarket,
  blockTime: Millis,
  capacity: number,
) => Promise<number>

interface Place {
  /** The page after this account is next. */
  after: UserId
  restsSince: number
}

export function createPayouts(ports: PayoutPorts, lane: RelayerLane, send: Send): VisitEnded {
  const { store, chain, calls, clock, logger } = ports
  const places = new Map<MarketId, Place>()

  const placeOf = (marketId: MarketId): Place => {
    const place = places.get(marketId) ?? { after: START, restsSince: Number.NEGATIVE_INFINITY }
    places.set(marketId, place)
    return place
  }

  /** The value in wei at the end of the market. */
  const worth = ({ spec, fundingIndex, finalPrice }: EndingMarket, { position }: OpenPosition): bigint =>
    valueAt(spec, position, fundingIndex, finalPrice as Price)

  /** After the last page the next pass starts with the first page. A pass that sent nothing is followed by a pause. */
  function turn(place: Place, page: readonly OpenPosition[], sent: number): void {
    const isLast = page.length < PAGE
    if (isLast && sent === 0) place.restsSince = clock.now()
    place.after = isLast || sent > 0 ? START : (page.at(-1) as OpenPosition).userId
  }

  async function reportDeficits(fence: Fence, market: EndingMarket): Promise<number> {
    const { marketId, trader } = market.spec
    const purpose = deficitsPurpose(marketId)
    const last = await store.lastSent(lane, purpose)
    const isOnItsWay =
      last !== null &&
      (last.status === 'SIGNED' ||
        last.status === 'BROADCAST' ||
        (last.status === 'MINED' && !last.isIngested) ||
        (last.status === 'REVERTED' && clock.now() - last.signedAt < REPORT_RETRY_MS))
    if (isOnItsWay) return 0
    const place = placeOf(marketId)
    const page = await store.positions(marketId, place.after, PAGE)
    if (page === null) return 0
    const insolvent = page.filter((one) => worth(market, one) < 0n).slice(0, DEFICITS_PER_TRANSACTION)
    const accounts = insolvent.map(({ account }) => account)
    if (accounts.length > 0) {
      logger.warn({ market_id: marketId, accounts: accounts.length }, 'insolvent accounts are reported')
      await send(fence, [{ purpose, call: calls.reportInsolvent(trader, accounts) }])
    }
    turn(place, page, accounts.length)
    return accounts.length > 0 ? 1 : 0
  }

  async function claim(fence: Fence, market: EndingMarket, capacity: number): Promise<number> {
    const { marketId, trader } = market.spec
    const place = placeOf(marketId)
    const page = await store.unclaimed(lane, marketId, {
      ...{ after: place.after, limit: PAGE, retryAfter: (clock.now() - CLAIM_RETRY_MS) as Millis },
    })
    if (page === null) return 0
    const due = page.filter((one) => worth(market, one) > 0n).slice(0, capacity)
    await send(
      fence,
      due.map(({ userId, account }) => ({
        purpose: claimPurpose(marketId, userId),
        call: calls.claim(trader, account),
      })),
    )
    turn(place, page, due.length)
    return due.length
  }

  return async (fence, market, blockTime, capacity) => {
    if (capacity <= 0 || elapsed(clock, placeOf(market.spec.marketId).restsSince) < REST_MS) return 0
    const { endedAt, windowEnd } = await chain.windDown(market.spec.trader)
    // A fork has taken the end back, and the indexer has not followed it yet.
    if (endedAt === 0) return 0
    return blockTime <= windowEnd ? reportDeficits(fence, market) : claim(fence, market, capacity)
  }
}
