/** Drills of the runbooks: a fault that makes an alert fire, and the steps of its runbook that clear it. */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEther, Wallet } from 'ethers'
import type { ProcessSpec } from '../../../stack/process-spec.ts'
import { BalancedApis } from '../../e2e/support/balanced-apis.ts'
import { OrderFlow } from '../../e2e/support/order-flow.ts'
import type { RollingStack } from '../../e2e/support/rolling.ts'
import { captureOps } from '../../ops/support/captured-ops.ts'
import { createAuthority } from '../../support/certificates.ts'

/** A drill of one exchange, which it may change. */
export interface Drill {
  /** The fault in words, and the steps of the runbook. */
  readonly fault: string
  readonly steps: readonly string[]
  readonly databaseSettings?: readonly string[]
  /** Changes a process before its first start. */
  readonly change?: (spec: ProcessSpec) => ProcessSpec
  inject(exchange: RollingStack): Promise<void>
  follow(exchange: RollingStack): Promise<void>
  /** Ends what the drill itself has started. */
  end?(): Promise<void>
}

const ENGINES = ['engine', 'engine standby']
const INDEXERS = ['indexer', 'indexer 2']
/** Nothing listens there. */
const NO_HOST = 'http://127.0.0.1:9'
const GAS = parseEther('10')
const MARKET = 1

async function begin(exchange: RollingStack, names: readonly string[]): Promise<void> {
  for (const name of names) await exchange.begin(name).ready()
}

const sendGas = async ({ stack: { keys, provider } }: RollingStack): Promise<void> => {
  const sender = new Wallet(keys.faucet.privateKey, provider)
  const sent = await sender.sendTransaction({ to: keys.relayer(MARKET).address, value: GAS })
  await sent.wait()
}

const setBalance = ({ stack: { keys, provider } }: RollingStack, wei: bigint): Promise<unknown> =>
  provider.send('anvil_setBalance', [keys.relayer(MARKET).address, `0x${wei.toString(16)}`])

function settlementStalled(): Drill {
  let apis: BalancedApis | undefined
  let flow: OrderFlow | undefined
  return {
    fault: 'the relayer key of a market with trades has no gas',
    steps: ['npm run cb -- ops relayer show names the key', 'Send gas to its address'],
    async inject(exchange) {
      await setBalance(exchange, 0n)
      apis = new BalancedApis(exchange.apis)
      flow = new OrderFlow(exchange.stack, apis)
    },
    follow: sendGas,
    async end() {
      await flow?.stop()
      await apis?.stop()
    },
  }
}

function backupStale(): Drill {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-drill-'))
  return {
    fault: 'the newest base backup is 27 hours old',
    steps: ['npm run cb -- ops backup run --dir <folder>'],
    async inject({ stack: { db } }) {
      const at = Date.now() - 27 * 3_600_000
      const backup = { label: 'old', started_at: at, completed_at: at, bytes: 1 }
      await db.insertInto('backups').values(backup).execute()
    },
    async follow({ stack: { postgres } }) {
      mkdirSync(join(folder, 'wal'))
      const { code, stderr } = await captureOps(['backup', 'run', '--dir', folder], {
        DATABASE_URL: postgres.url,
      })
      if (code !== 0) throw new Error(`ops backup run failed: ${stderr}`)
    },
    end: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

function certificateExpiresSoon(): Drill {
  const authority = createAuthority()
  const { certificate, key } = authority.issue('soon', { days: 10 })
  return {
    fault: 'the certificate of a listener expires in 10 days',
    steps: ['Write new files beside the old ones and rename each over the old file'],
    change: (spec) =>
      spec.name === 'indexer 2'
        ? {
            ...spec,
            env: { ...spec.env, TLS_CERT_FILE: certificate, TLS_KEY_FILE: key },
            readyUrl: null,
          }
        : spec,
    async inject() {},
    async follow() {
      const renewed = authority.issue('renewed', { days: 28 })
      renameSync(renewed.key, key)
      renameSync(renewed.certificate, certificate)
    },
    end: async () => authority.remove(),
  }
}

function priceFeedsAbsent(): Drill {
  let right = ''
  return {
    fault: 'the price file names a source that does not answer',
    steps: ['Correct the source in PRICES_FILE, which is read again within a second'],
    async inject({ stack: { pricesFile } }) {
      right = readFileSync(pricesFile, 'utf8')
      const file = JSON.parse(right) as { feeds: { market_id: number; sources?: unknown }[] }
      const wrong = { name: 'gone', kind: 'http', url: NO_HOST, price: 'last' }
      for (const feed of file.feeds) if (feed.market_id === MARKET && feed.sources) feed.sources = [wrong]
      writeFileSync(pricesFile, JSON.stringify(file))
    },
    follow: async ({ stack: { pricesFile } }) => writeFileSync(pricesFile, right),
  }
}

/** By alert. */
export const DRILLS: Readonly<Record<string, () => Drill>> = {
  ProcessDown: () => ({
    fault: 'an indexer has ended and is not started',
    steps: ['systemctl start clearbatch@indexer'],
    inject: (exchange) => exchange.end('indexer 2'),
    follow: (exchange) => begin(exchange, ['indexer 2']),
  }),
  EngineWithoutOwner: () => ({
    fault: 'both members of the engine have ended',
    steps: ['systemctl start clearbatch@keeper-engine on both hosts'],
    async inject(exchange) {
      for (const name of ENGINES) await exchange.end(name)
    },
    follow: (exchange) => begin(exchange, ENGINES),
  }),
  EngineWithoutStandby: () => ({
    fault: 'the standby member of the engine has ended',
    steps: ['systemctl start clearbatch@keeper-engine on its host'],
    inject: (exchange) => exchange.end('engine standby'),
    follow: (exchange) => begin(exchange, ['engine standby']),
  }),
  ChainNotFollowed: () => ({
    fault: 'the node of both indexers does not answer',
    steps: ['Change RPC_URL of the indexers to another node and restart them'],
    async inject(exchange) {
      for (const name of INDEXERS) {
        await exchange.end(name)
        exchange.begin(name, undefined, { RPC_URL: NO_HOST, RPC_WS_URL: '' })
      }
    },
    async follow(exchange) {
      for (const name of INDEXERS) await exchange.end(name)
      await begin(exchange, INDEXERS)
    },
  }),
  RelayerBalanceLow: () => ({
    fault: 'the relayer key of a market has little gas',
    steps: ['npm run cb -- ops relayer show names the key', 'Send gas to its address'],
    inject: async (exchange) => void (await setBalance(exchange, parseEther('0.01'))),
    follow: sendGas,
  }),
  SettlementStalled: settlementStalled,
  PriceFeedsAbsent: priceFeedsAbsent,
  BackupStale: backupStale,
  CertificateExpiresSoon: certificateExpiresSoon,
}
