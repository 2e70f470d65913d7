/** The table `funding_states`, and a market's funding as its queue of actions will make it. The engine writes it. */

import { sql } from 'kysely'
import { type FundingStep, fundingAfter } from '../domain/actions/queue.ts'
import { type FundingState, fundingIndexAt, NO_FUNDING } from '../domain/prices/funding-state.ts'
import type { FundingIndex, HourlyFunding, Millis, Quote } from '../domain/units.ts'
import type { Tx } from './client.ts'

// ---------------------------------------------------------------------- with the queue

/** A market's funding in one JSON value: after the last mined action, and what each queued one changes. */
export interface StoredFunding {
  readonly mined: {
    readonly index: string
    readonly as_of: number
    readonly rate: string
    readonly valid_from: number
    readonly valid_until: number
  } | null
  readonly queue: readonly {
    readonly as_of: number
    readonly rate: string | null
    readonly valid_until: number | null
  }[]
}

/** SQL of a `StoredFunding`. `marketId`: an SQL expression. */
export const fundingColumn = (marketId: string): string => `
  json_build_object(
    'mined', (
      select json_build_object('index', f.funding_index::text, 'as_of', f.as_of, 'rate', f.rate::text,
        'valid_from', f.valid_from, 'valid_until', f.valid_until)
      from funding_states f where f.market_id = ${marketId} order by f.action_id desc limit 1
    ),
    'queue', (
      select coalesce(json_agg(json_build_object('as_of', a.as_of, 'rate', a.payload->>'rate',
        'valid_until', a.payload->'valid_until') order by a.queue_no), '[]')
      from actions a where a.market_id = ${marketId} and a.status in ('QUEUED', 'SIGNED', 'SUBMITTED')
    )
  )
`

/** Funding after the last queued action: what the next action and every reader start from. */
export function toFunding({ mined, queue }: StoredFunding): FundingState {
  const state: FundingState =
    mined === null
      ? NO_FUNDING
      : {
          index: BigInt(mined.index) as FundingIndex,
          asOf: mined.as_of as Millis,
          running: {
            rate: BigInt(mined.rate) as HourlyFunding,
            validFrom: mined.valid_from as Millis,
            validUntil: mined.valid_until as Millis,
          },
        }
  return fundingAfter(state, queue.map(toStep))
}

export async function loadFunding(tx: Tx, marketId: number): Promise<FundingState> {
  const { rows } = await sql<{ funding: StoredFunding }>`
    select ${sql.raw(fundingColumn('m.market_id'))} as funding from markets m where m.market_id = ${marketId}
  `.execute(tx)
  return toFunding((rows[0] as (typeof rows)[number]).funding)
}

const toStep = ({ as_of, rate, valid_until }: StoredFunding['queue'][number]): FundingStep => ({
  asOf: as_of as Millis,
  sets:
    rate === null
      ? null
      : { rate: BigInt(rate) as HourlyFunding, validUntil: valid_until as number as Millis },
})

// ---------------------------------------------------------------------- margin of all positions

/** A position of an account, as far as its margin needs it. */
export interface StoredMargin {
  readonly market_id: number
  readonly size: number
  readonly folded_margin: string
}

export interface MarketFunding {
  readonly market_id: number
  readonly funding: StoredFunding
}

const HAS_MARGIN = '(p.size <> 0 or p.folded_margin <> 0)'

/** SQL of the `StoredMargin`s of an account as JSON. `userId`: an SQL expression. */
export const marginsColumn = (table: 'positions' | 'read.positions', userId: string): string => `
  (
    select coalesce(json_agg(json_build_object('market_id', p.market_id, 'size', p.size, 'folded_margin', p.folded_margin::text)), '[]')
    from ${table} p where p.user_id = ${userId} and ${HAS_MARGIN}
  )
`

/** SQL of the `MarketFunding`s of all markets in which one of the accounts has margin, as rows. `userIds`: an SQL expression of an array. */
export const fundingOfMargins = (table: 'positions' | 'read.positions', userIds: string): string => `
  select o.market_id, ${fundingColumn('o.market_id')} as funding
  from (select distinct p.market_id from ${table} p where p.user_id = any(${userIds}) and ${HAS_MARGIN}) o
`

export const toFundings = (rows: readonly MarketFunding[]): ReadonlyMap<number, FundingState> =>
  new Map(rows.map(({ market_id, funding }) => [market_id, toFunding(funding)]))

/** The margin of all of an account's positions, with the funding of an action as of `asOf`. `fundings`: of all their markets. */
export const toMargin = (
  positions: readonly StoredMargin[],
  fundings: ReadonlyMap<number, FundingState>,
  asOf: Millis,
): Quote =>
  positions.reduce((sum, { market_id, size, folded_margin }) => {
    const index = fundingIndexAt(fundings.get(market_id) ?? NO_FUNDING, asOf)
    return sum + BigInt(folded_margin) - BigInt(size) * index
  }, 0n) as Quote
