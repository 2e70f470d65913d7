/** Access of this machine's own tools to a running stack: its keys, its database, and funded accounts. */
import { dirname } from 'node:path'
import type { JsonRpcProvider } from 'ethers'
import { sql } from 'kysely'
import { createDb, createPool, type Db } from '../db/client.ts'
import { loadMarkets } from '../db/markets.ts'
import type { MarketSpec } from '../domain/market/market.ts'
import { type EngineAccess, engineAccess } from '../keeper/engine/link/access.ts'
import { fund, issueApiKeys, localProvider } from './accounts.ts'
import { dataDirAt, readJson } from './data-dir.ts'
import type { Deployment } from './deployment.ts'
import { type Key, type Keys, loadKeys } from './keys.ts'
import { StackError } from './options.ts'
import { createReportSigner, type ReportSigner } from './oracle.ts'
import { readStackFile, type StackAccount, type StackFile } from './stack-file.ts'

export interface Admin {
  readonly file: StackFile
  readonly db: Db
  /** Login of the database's owner. */
  readonly databaseUrl: string
  readonly engine: EngineAccess<'operator'>
  readonly provider: JsonRpcProvider
  readonly keys: Keys
  readonly specs: readonly MarketSpec[]
  readonly oracle: ReportSigner
  /** The price configuration of the stack's keeper. */
  readonly pricesFile: string
  /** Funds the accounts, deposits, and issues API keys. Skips the deposit of accounts that are already funded. */
  accounts(keys: readonly Key[], deposit: bigint): Promise<readonly StackAccount[]>
  close(): Promise<void>
}

/** `admin.json`. */
export interface AdminFile {
  readonly database_url: string
  /** Where the engine listens, and the file with the operator's key. */
  readonly engine: {
    readonly url: string
    readonly keys_file: string
    /** Variables of the certificates of this connection; absent without TLS. */
    readonly tls?: Readonly<Record<string, string>>
  }
}

const engineOf = ({ engine }: AdminFile): Admin['engine'] =>
  engineAccess({ ...engine.tls, ENGINE_URL: engine.url, ENGINE_KEYS_FILE: engine.keys_file }, 'tool', [
    'operator',
  ])

/** Opens the stack that wrote this stack.json. */
export async function openAdmin(stackFile: string): Promise<Admin> {
  const file = readStackFile(stackFile)
  const dir = dataDirAt(dirname(stackFile))
  const access = readJson<AdminFile>(dir.admin)
  const deployment = readJson<Deployment>(dir.deployment)
  if (access === null || deployment === null)
    throw new StackError(
      `${dir.path} is not the data directory of a running stack: it lacks admin.json or deployment.json`,
    )

  // The tools exclude each other by locks of transactions, in which they wait for the chain.
  const db = createDb(
    createPool({ url: access.database_url, connections: 4, name: 'stack admin', idleInTransactionMs: 0 }),
  )
  const provider = localProvider(file.rpc_url, file.chain_id)
  const keys = loadKeys(dir)
  const { usdm, margin_bank: marginBank } = file.contracts
  return {
    file,
    db,
    databaseUrl: access.database_url,
    engine: engineOf(access),
    provider,
    keys,
    specs: await loadMarkets(db),
    pricesFile: dir.prices,
    oracle: createReportSigner(keys.oracle.privateKey, {
      chainId: file.chain_id,
      address: deployment.contracts.oracle,
    }),
    async accounts(list, deposit) {
      const bank = { provider, deployer: keys.deployer, usdm, marginBank }
      await exclusively(db, 'stack funding', () => fund(bank, list, { wallet: 0n, deposit }))
      return issueApiKeys(db, { baseUrl: file.base_url, issuerUrl: file.issuer_url }, list)
    },
    async close() {
      provider.destroy()
      await db.destroy()
    },
  }
}

/** One of the tools that run at the same time does this: they pay from one key, and change one price configuration. */
export function exclusively<Result>(db: Db, name: string, work: () => Promise<Result>): Promise<Result> {
  return db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtext(${name}))`.execute(tx)
    return work()
  })
}
