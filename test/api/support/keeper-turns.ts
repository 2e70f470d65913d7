/** What the engine, a worker and the ingest do with the orders of an exchange, without a chain. */
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { MarketId, Millis } from '../../../domain/units.ts'
import type { AnswerOf, CommandKind, CommandOf } from '../../../keeper/engine/commands.ts'
import { ask } from '../../../keeper/engine/link/engine.ts'
import type { MarketFixture } from '../../keeper/support/market-fixture.ts'
import { minedPart, oldestPart } from '../../keeper/support/mine-part.ts'
import { perpetual } from '../../support/markets.ts'
import type { ExchangeFixture } from './exchange-fixture.ts'

const BUDGET_MS = 30_000
const RELAYER = `0x${'e'.repeat(40)}`
const LATEST = 8_640_000_000_000_000 as Millis

const send = <Kind extends CommandKind>(
  { engine }: ExchangeFixture,
  command: CommandOf<Kind>,
): Promise<AnswerOf<Kind>> => ask<Kind>(engine, command, BUDGET_MS)

/** Runs one turn of the market. Returns the number of its batch; null if nothing matched. */
export async function runAuction(exchange: ExchangeFixture, spec = perpetual): Promise<number | null> {
  const { batchId } = await exchange.engine.takeTurn(spec.marketId)
  await exchange.project()
  return batchId
}

/** Signs, sends and mines the oldest part that waits. */
export async function minePart(exchange: ExchangeFixture, spec: MarketSpec = perpetual): Promise<void> {
  const { db } = exchange
  const fixture = { db, spec, clock: { value: Date.now() } } as unknown as MarketFixture
  const { marketId } = spec
  await sendOldest(exchange, marketId)
  const part = await oldestPart(fixture)
  if (part === undefined) throw new Error('no part waits')
  const { block, facts } = await minedPart(fixture, part)
  const answer = await send<'apply_block'>(exchange, {
    kind: 'apply_block',
    block,
    from: block.number,
    facts,
    silent: [],
    positions: [],
    gasUsed: new Map(),
  })
  if (answer.kind !== 'done') throw new Error(`the block is not applied: ${answer.kind}`)
  await exchange.project()
}

async function sendOldest(exchange: ExchangeFixture, marketId: MarketId): Promise<void> {
  await send<'register_lane'>(exchange, {
    kind: 'register_lane',
    relayer: RELAYER,
    chainId: 1,
    lane: 'without a chain',
    firstNonce: 0,
  })
  const next = await send<'next_action'>(exchange, {
    kind: 'next_action',
    marketId,
    relayer: RELAYER,
    latestAsOf: LATEST,
  })
  if (next.kind !== 'action') throw new Error(`no action waits: ${next.kind}`)
  const { queueNo, nonce } = next
  await send<'signed'>(exchange, {
    kind: 'signed',
    marketId,
    queueNo,
    relayer: RELAYER,
    nonce,
    attempt: 1,
    hash: `0x${queueNo.toString(16).padStart(64, '0')}`,
    purpose: 'settle_part',
  })
  await send<'submitted'>(exchange, { kind: 'submitted', marketId, relayer: RELAYER, nonce })
}
