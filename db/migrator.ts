/** The migrations in their order, and the check that a process and its database have the same schema. */
import { sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { Db } from './client.ts'
import * as writeSide from './migrations/0001-write-side.ts'
import * as chain from './migrations/0002-chain.ts'
import * as readModel from './migrations/0003-read-model.ts'
import * as orderLife from './migrations/0004-order-life.ts'
import * as clientRequests from './migrations/0005-client-requests.ts'
import * as publicFills from './migrations/0006-public-fills.ts'
import * as readLiveOrders from './migrations/0006-read-live-orders.ts'
import * as leanWrites from './migrations/0007-lean-writes.ts'
import * as eventArrival from './migrations/0008-event-arrival.ts'
import * as leanReads from './migrations/0009-lean-reads.ts'
import * as vocabulary from './migrations/0010-vocabulary.ts'
import * as processRoles from './migrations/0011-process-roles.ts'
import * as feeAllowance from './migrations/0012-fee-allowance.ts'
import * as standingOrders from './migrations/0013-standing-orders.ts'
import * as accessPaths from './migrations/0014-access-paths.ts'
import * as fairPriceReads from './migrations/0015-fair-price-reads.ts'
import * as priceProtection from './migrations/0015-price-protection.ts'
import * as heldMark from './migrations/0016-held-mark.ts'
import * as ordersClosedBy from './migrations/0016-orders-closed-by.ts'
import * as executableLevels from './migrations/0017-executable-levels.ts'
import * as spanningBookmarks from './migrations/0018-spanning-bookmarks.ts'
import * as indexedBlocks from './migrations/0019-indexed-blocks.ts'
import * as actionQueue from './migrations/0020-action-queue.ts'
import * as projections from './migrations/0021-projections.ts'
import * as openPositions from './migrations/0023-open-positions.ts'
import * as resetAsOf from './migrations/0023-reset-as-of.ts'
import * as marketEndings from './migrations/0024-market-endings.ts'
import * as priceFeeds from './migrations/0025-price-feeds.ts'
import * as funding from './migrations/0026-funding.ts'
import * as accountTransactions from './migrations/0027-account-transactions.ts'
import * as tradingCalendar from './migrations/0028-trading-calendar.ts'
import * as marketChanges from './migrations/0029-market-changes.ts'
import * as liquidations from './migrations/0030-liquidations.ts'
import * as risk from './migrations/0031-risk.ts'
import * as marketLife from './migrations/0032-market-life.ts'
import * as impactNotional from './migrations/0033-impact-notional.ts'
import * as credentials from './migrations/0034-credentials.ts'
import * as relayOperations from './migrations/0035-relay-operations.ts'
import * as adjustments from './migrations/0036-adjustments.ts'
import * as withdrawals from './migrations/0037-withdrawals.ts'
import * as liquidationFailures from './migrations/0038-liquidation-failures.ts'
import * as liveFeed from './migrations/0041-live-feed.ts'
import * as marketData from './migrations/0042-market-data.ts'
import * as batchProofs from './migrations/0043-batch-proofs.ts'
import * as packedInputs from './migrations/0043-packed-inputs.ts'
import * as connectionSwitches from './migrations/0045-connection-switches.ts'
import * as transactionsByKind from './migrations/0046-transactions-by-kind.ts'
import * as clientOrderIds from './migrations/0047-client-order-ids.ts'
import * as eventsByTime from './migrations/0048-events-by-time.ts'
import * as keepers from './migrations/0052-keepers.ts'
import * as positionHistory from './migrations/0054-position-history.ts'
import * as blockSteps from './migrations/0055-block-steps.ts'
import * as ordersByClosingFill from './migrations/0056-orders-by-closing-fill.ts'
import * as roomForUpdates from './migrations/0057-room-for-updates.ts'
import * as indexerLeases from './migrations/0058-indexer-leases.ts'
import * as engine from './migrations/0059-engine.ts'
import * as keeperReadsSessionKeys from './migrations/0060-keeper-reads-session-keys.ts'
import * as engineCheckpoints from './migrations/0062-engine-checkpoints.ts'
import * as engineAppend from './migrations/0063-engine-append.ts'
import * as engineIncarnation from './migrations/0064-engine-incarnation.ts'
import * as relayerRotation from './migrations/0065-relayer-rotation.ts'
import * as engineGuard from './migrations/0066-engine-guard.ts'
import * as chainThroughEngine from './migrations/0067-chain-through-engine.ts'
import * as apiSendsCommands from './migrations/0068-api-sends-commands.ts'
import * as keeperSendsCommands from './migrations/0069-keeper-sends-commands.ts'
import * as namedApiKeys from './migrations/0070-named-api-keys.ts'
import * as announcements from './migrations/0071-announcements.ts'
import * as unreadTables from './migrations/0072-unread-tables.ts'
import * as orderFlags from './migrations/0080-order-flags.ts'
import * as brackets from './migrations/0081-brackets.ts'
import * as builders from './migrations/0085-builders.ts'
import * as tablesBehind from './migrations/0090-tables-behind.ts'
import * as equity from './migrations/0091-equity.ts'
import * as historyFiles from './migrations/0092-history-files.ts'
import * as appendWithoutNotice from './migrations/0095-append-without-notice.ts'
import * as restoredDatabases from './migrations/0096-restored-databases.ts'
import * as noFills from './migrations/0097-no-fills.ts'

export const MIGRATIONS: Record<string, Migration> = {
  '0001-write-side': writeSide,
  '0002-chain': chain,
  '0003-read-model': readModel,
  '0004-order-life': orderLife,
  '0005-client-requests': clientRequests,
  '0006-public-fills': publicFills,
  '0006-read-live-orders': readLiveOrders,
  '0007-lean-writes': leanWrites,
  '0008-event-arrival': eventArrival,
  '0009-lean-reads': leanReads,
  '0010-vocabulary': vocabulary,
  '0011-process-roles': processRoles,
  '0012-fee-allowance': feeAllowance,
  '0013-standing-orders': standingOrders,
  '0014-access-paths': accessPaths,
  '0015-fair-price-reads': fairPriceReads,
  '0015-price-protection': priceProtection,
  '0016-held-mark': heldMark,
  '0016-orders-closed-by': ordersClosedBy,
  '0017-executable-levels': executableLevels,
  '0018-spanning-bookmarks': spanningBookmarks,
  '0019-indexed-blocks': indexedBlocks,
  '0020-action-queue': actionQueue,
  '0021-projections': projections,
  '0023-open-positions': openPositions,
  '0023-reset-as-of': resetAsOf,
  '0024-market-endings': marketEndings,
  '0025-price-feeds': priceFeeds,
  '0026-funding': funding,
  '0027-account-transactions': accountTransactions,
  '0028-trading-calendar': tradingCalendar,
  '0029-market-changes': marketChanges,
  '0030-liquidations': liquidations,
  '0031-risk': risk,
  '0032-market-life': marketLife,
  '0033-impact-notional': impactNotional,
  '0034-credentials': credentials,
  '0035-relay-operations': relayOperations,
  '0036-adjustments': adjustments,
  '0037-withdrawals': withdrawals,
  '0038-liquidation-failures': liquidationFailures,
  '0041-live-feed': liveFeed,
  '0042-market-data': marketData,
  '0043-batch-proofs': batchProofs,
  '0043-packed-inputs': packedInputs,
  '0045-connection-switches': connectionSwitches,
  '0046-transactions-by-kind': transactionsByKind,
  '0047-client-order-ids': clientOrderIds,
  '0048-events-by-time': eventsByTime,
  '0052-keepers': keepers,
  '0054-position-history': positionHistory,
  '0055-block-steps': blockSteps,
  '0056-orders-by-closing-fill': ordersByClosingFill,
  '0057-room-for-updates': roomForUpdates,
  '0058-indexer-leases': indexerLeases,
  '0059-engine': engine,
  '0060-keeper-reads-session-keys': keeperReadsSessionKeys,
  '0062-engine-checkpoints': engineCheckpoints,
  '0063-engine-append': engineAppend,
  '0064-engine-incarnation': engineIncarnation,
  '0065-relayer-rotation': relayerRotation,
  '0066-engine-guard': engineGuard,
  '0067-chain-through-engine': chainThroughEngine,
  '0068-api-sends-commands': apiSendsCommands,
  '0069-keeper-sends-commands': keeperSendsCommands,
  '0070-named-api-keys': namedApiKeys,
  '0071-announcements': announcements,
  '0072-unread-tables': unreadTables,
  '0080-order-flags': orderFlags,
  '0081-brackets': brackets,
  '0085-builders': builders,
  '0090-tables-behind': tablesBehind,
  '0091-equity': equity,
  '0092-history-files': historyFiles,
  '0095-append-without-notice': appendWithoutNotice,
  '0096-restored-databases': restoredDatabases,
  '0097-no-fills': noFills,
}

export const createMigrator = (db: Db): Migrator =>
  new Migrator({ db, provider: { getMigrations: async () => MIGRATIONS } })

/** Migrates the database to the newest schema. Several processes may run it at once. The connection must be the owner's. */
export async function migrate(db: Db): Promise<void> {
  const { error } = await createMigrator(db).migrateToLatest()
  if (error) throw error
}

/** The database has another schema than this version of the code needs. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError'
}

/** Throws SchemaVersionError unless the newest migration is applied and none is newer. Every process calls it before it serves. */
export async function checkSchema(db: Db): Promise<void> {
  const expected = Object.keys(MIGRATIONS).at(-1) as string
  const found = await newestMigration(db)
  if (found === expected) return
  const remedy =
    found !== null && found > expected
      ? 'start a version of the process that has this schema'
      : 'run `npm run cb -- db migrate` with the DATABASE_URL of the owner of the database'
  throw new SchemaVersionError(
    `the database has schema ${found ?? 'none'}, this version needs ${expected}: ${remedy}`,
  )
}

/** Null before the first migration. */
export async function newestMigration(db: Db): Promise<string | null> {
  const { rows: tables } = await sql<{ found: boolean }>`
    select to_regclass('kysely_migration') is not null as found
  `.execute(db)
  if (tables[0]?.found !== true) return null
  const { rows } = await sql<{ name: string | null }>`select max(name) as name from kysely_migration`.execute(
    db,
  )
  return rows[0]?.name ?? null
}
