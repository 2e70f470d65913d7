/** The report of a replay: requests sent, batches and prices that resulted, and an audit of all balances and positions. */
import { fromE18 } from '../../client/decimals.ts'
import { notionalAt } from '../../domain/market/market.ts'
import type { Steps, Ticks } from '../../domain/units.ts'
import type { Admin } from '../admin.ts'
import { audit, auditLine, settled } from '../audit/audit.ts'
import { verifyProofs } from '../audit/proofs.ts'
import { ShadowRun } from '../shadow/shadow-run.ts'
import type { Replayed } from './run.ts'
import { compare, percentile } from './statistics.ts'

export async function report(admin: Admin, replayed: Replayed): Promise<string> {
  await settled(admin.db)
  const { spec, sent, skipped, lateMs } = replayed
  const all = await batchesOf(admin, replayed)
  const batches = all.filter(({ status }) => status !== 'VOIDED')
  const fills = await fillsOf(admin, replayed)
  const volume = batches.reduce((sum, batch) => sum + batch.volume, 0)
  const turnover = batches.reduce(
    (sum, { price, volume: steps }) => sum + notionalAt(spec, price as Ticks, steps as Steps),
    0n,
  )
  const prices = compare(
    batches.map(({ as_of, price }) => ({ at: as_of, price })),
    replayed.trades,
  )
  const checked = await audit({
    db: admin.db,
    provider: admin.provider,
    specs: admin.specs,
    marginBank: admin.file.contracts.margin_bank,
    forwarder: admin.file.contracts.forwarder,
    baseUrl: admin.file.base_url,
    accounts: [...admin.file.accounts, ...replayed.accounts],
  })
  const ms = (p: number): string => percentile(sent.latencies, p).toFixed(1)
  return [
    '',
    `orders      ${sent.orders} sent, ${sent.accepted} accepted; rejected: ${listed(sent.rejected)}`,
    `cancels     ${sent.cancels} sent; rejected: ${listed(sent.cancelsRejected)}; ${skipped} events of unknown orders skipped`,
    `batches     ${batches.length} settled, ${all.length - batches.length} voided, volume ${quantity(volume, spec.step)}, turnover ${Number(fromE18(turnover)).toFixed(0)} USDM`,
    `fills       ${fills} of the replay's own orders`,
    `prices      ${prices.pairs} clearing prices compared with recorded trades: mean absolute difference ` +
      `${prices.difference.toFixed(2)} ticks, correlation ${prices.correlation?.toFixed(4) ?? 'none'}`,
    `latency     request to response p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms; at most ${Math.round(lateMs)} ms behind the recording`,
    `audit       ${auditLine(checked)}`,
    `shadow      ${differencesIn(await new ShadowRun(admin.db).compare())}`,
    ...(await feedLines(replayed)),
    ...(await proofLines(admin, replayed)),
  ].join('\n')
}

async function feedLines({ copies }: Replayed): Promise<string[]> {
  if (copies === null) return []
  const differences = await copies.differences()
  const { size, messages } = copies
  copies.close()
  return [`feed        ${size} copies, ${messages} messages, ${differencesIn(differences)}`]
}

async function proofLines({ file }: Admin, { verify, spec, from }: Replayed): Promise<string[]> {
  if (!verify) return []
  const batches = { marketIds: [spec.marketId], from: new Date(from).toISOString() }
  const { verified, unavailable, problems } = await verifyProofs(file, batches)
  const missing = unavailable.length === 0 ? '' : `${unavailable.length} no longer kept, `
  return [`proofs      ${verified} verified against the chain, ${missing}${differencesIn(problems)}`]
}

/** Fails the replay if there are any. */
function differencesIn(lines: readonly string[]): string {
  if (lines.length > 0) process.exitCode = 1
  return [`${lines.length} differences`, ...lines].join('\n  ')
}

const listed = (counts: ReadonlyMap<string, number>): string =>
  counts.size === 0
    ? 'none'
    : [...counts]
        .sort(([, a], [, b]) => b - a)
        .map(([code, count]) => `${code} ${count}`)
        .join(', ')

const quantity = (steps: number, step: bigint): string => fromE18(BigInt(steps) * step)

const batchesOf = ({ db }: Admin, { spec, from, until }: Replayed) =>
  db
    .selectFrom('read.batches')
    .select(['as_of', 'price', 'volume', 'status'])
    .where('market_id', '=', spec.marketId)
    .where('as_of', '>=', from)
    .where('as_of', '<=', until)
    .orderBy('batch_id')
    .execute()

async function fillsOf({ db }: Admin, { spec, accounts, from }: Replayed): Promise<number> {
  const { count } = await db
    .selectFrom('read.fills')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('market_id', '=', spec.marketId)
    .where('matched_at', '>=', from)
    .where('status', '<>', 'FAILED')
    .where(
      'user_id',
      'in',
      accounts.map(({ user_id }) => user_id),
    )
    .executeTakeFirstOrThrow()
  return count
}
