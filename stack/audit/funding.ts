/**
 * Funding paid per account, three ways: transactions and accrual, event logs, and contract views. Each way must sum to
 * zero over all accounts of a market.
 */
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import { Client } from '../../client/client.ts'
import type { Tx } from '../../db/client.ts'
import type { MarketSpec } from '../../domain/market/market.ts'
import { fundingPayment } from '../../domain/prices/funding-payment.ts'
import type { Address, FundingIndex, Steps } from '../../domain/units.ts'
import { decodeTraderLog } from '../../indexer/ingest/decode/isolated-trader.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import type { StackAccount } from '../stack-file.ts'
import { FundingReplay } from './funding-replay.ts'
import { compare, positionName, put, type Source, user, type Values } from './values.ts'

interface FundingInput {
  readonly provider: JsonRpcProvider
  readonly specs: readonly MarketSpec[]
  readonly users: readonly { readonly user_id: number; readonly address: string }[]
  /** Chain and database are compared at this block. */
  readonly block: number
}

const FUNDING = 'funding'
/** Blocks of one request for logs. */
const RANGE = 5_000

/** Funding of one market on chain, by address. */
interface ChainFunding {
  readonly logs: ReadonlyMap<Address, bigint>
  readonly views: ReadonlyMap<Address, bigint>
  /** The index of the market's last action. */
  readonly index: FundingIndex
}

async function replayLogs(
  provider: JsonRpcProvider,
  spec: MarketSpec,
  block: number,
): Promise<FundingReplay> {
  const replay = new FundingReplay()
  for (let fromBlock = 0; fromBlock <= block; fromBlock += RANGE) {
    const toBlock = Math.min(block, fromBlock + RANGE - 1)
    const logs = await provider.getLogs({ address: spec.trader, fromBlock, toBlock })
    for (const log of logs) replay.apply(decodeTraderLog(log, spec))
  }
  return replay
}

/** By the views, funding is what the margin has beyond everything else that moved into it. */
async function fundingOnChain(
  provider: JsonRpcProvider,
  spec: MarketSpec,
  blockTag: number,
): Promise<ChainFunding> {
  const replay = await replayLogs(provider, spec, blockTag)
  const trader = IsolatedTrader__factory.connect(spec.trader, provider)
  const index = (await trader.lastReference({ blockTag })).fundingIndex as FundingIndex
  const logs = new Map<Address, bigint>()
  const views = new Map<Address, bigint>()
  for (const account of replay.accounts) {
    const { margin } = await trader.position(account, { blockTag })
    logs.set(account, replay.received(account, index))
    views.set(account, margin - replay.deposited(account))
  }
  return { logs, views, index }
}

interface AccruedRow {
  readonly user_id: number
  readonly market_id: number
  readonly size: number
  readonly index: bigint
}

/** Funding accrued in the read model since each account's last payment, by position name. */
async function accruedInReadModel(
  tx: Tx,
  indexes: ReadonlyMap<number, FundingIndex>,
): Promise<Map<string, bigint>> {
  const { rows } = await sql<AccruedRow>`
    select p.user_id, p.market_id, p.size,
      case when coalesce(u.number, 0) > p.from_number then u.funding_index else p.from_index end as index
    from read.funding_positions p left join lateral (
      select number, funding_index from read.funding_indexes where market_id = p.market_id order by number desc limit 1
    ) u on true
    where p.size <> 0
  `.execute(tx)
  return new Map(
    rows.map(({ user_id, market_id, size, index: from }) => {
      const to = indexes.get(market_id) ?? (0n as FundingIndex)
      return [positionName(user_id, market_id), fundingPayment(size as Steps, from as FundingIndex, to)]
    }),
  )
}

async function recordedInReadModel(tx: Tx): Promise<Map<string, bigint>> {
  const { rows } = await sql<{ user_id: number; market_id: number; paid: bigint }>`
    select user_id, market_id, sum(funding_payment_delta) as paid from read.account_transactions
    where type = 'funding_payment' group by user_id, market_id
  `.execute(tx)
  return new Map(rows.map(({ user_id, market_id, paid }) => [positionName(user_id, market_id), paid]))
}

function toValues(...parts: readonly ReadonlyMap<string, bigint>[]): Values {
  const sums = new Map<string, bigint>()
  for (const [name, wei] of parts.flatMap((part) => [...part])) sums.set(name, (sums.get(name) ?? 0n) + wei)
  const values = new Map<string, string>()
  for (const [name, wei] of sums) put(values, name, { [FUNDING]: wei })
  return values
}

export interface FundingSnapshot {
  readonly views: Source
  readonly others: readonly Source[]
  /** By the name of the position. */
  readonly accrued: ReadonlyMap<string, bigint>
}

export async function fundingSnapshot(
  tx: Tx,
  { provider, specs, users, block }: FundingInput,
): Promise<FundingSnapshot> {
  const ids = new Map(users.map(({ user_id, address }) => [address.toLowerCase(), user_id]))
  const [views, logs] = [new Map<string, bigint>(), new Map<string, bigint>()]
  const indexes = new Map<number, FundingIndex>()
  for (const spec of specs.filter(({ kind }) => kind === 'perpetual')) {
    const found = await fundingOnChain(provider, spec, block)
    indexes.set(spec.marketId, found.index)
    const nameOf = (account: Address) => positionName(ids.get(account.toLowerCase()) ?? 0, spec.marketId)
    for (const [account, wei] of found.views) views.set(nameOf(account), wei)
    for (const [account, wei] of found.logs) logs.set(nameOf(account), wei)
  }
  const accrued = await accruedInReadModel(tx, indexes)
  const readModel = toValues(await recordedInReadModel(tx), accrued)
  return {
    views: { name: 'contract views', values: toValues(views) },
    others: [
      { name: 'event logs', values: toValues(logs) },
      { name: 'read model', values: readModel },
    ],
    accrued,
  }
}

const PAGE = 1_000

/** The payments that REST lists for the accounts, and what has accrued since. */
export async function fundingInRest(
  baseUrl: string,
  accounts: readonly StackAccount[],
  accrued: ReadonlyMap<string, bigint>,
): Promise<Source> {
  const recorded = new Map<string, bigint>()
  for (const { user_id, api_key, private_key } of accounts) {
    const client = new Client({ baseUrl, apiKey: api_key, privateKey: private_key })
    for (let after = null as { created_at: string; id: string } | null; ; ) {
      const page = await client.account.transactions({ type: 'funding_payment', limit: PAGE, after })
      for (const { market_id, funding_payment_delta_e18_raw } of page) {
        const name = positionName(user_id, market_id ?? 0)
        recorded.set(name, (recorded.get(name) ?? 0n) + BigInt(funding_payment_delta_e18_raw ?? 0))
      }
      after = page.at(-1) ?? null
      if (after === null) break
    }
  }
  const users = new Set(accounts.map(({ user_id }) => user(user_id)))
  return { name: 'REST', values: toValues(recorded, accrued), users }
}

/** Differences between the sources, and markets in which a source does not sum to zero. */
export function fundingDifferences({ views, others }: FundingSnapshot, rest: Source): string[] {
  const unbalanced = [views, ...others].flatMap(({ name, values }) => {
    const sums = new Map<string, bigint>()
    for (const [position, wei] of values) {
      const market = position.split(' ').slice(2, 4).join(' ')
      sums.set(market, (sums.get(market) ?? 0n) + BigInt(wei))
    }
    return [...sums].flatMap(([market, sum]) =>
      sum === 0n ? [] : [`${market} ${FUNDING} of all accounts: ${name} ${sum} instead of 0`],
    )
  })
  return [...compare(views, [...others, rest]), ...unbalanced]
}
