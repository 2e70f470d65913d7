/** `status` and `doctor`: whether everything works that trading needs, and the remedy of each failure. */

import { Rpc } from '../../client/chain/rpc.ts'
import type { Client } from '../../client/client.ts'
import { ClearbatchError } from '../../client/errors.ts'
import type { Me, SharedContracts } from '../../client/responses.ts'
import type { Context } from '../context.ts'
import { CommandError, EXIT, failureOf } from '../failure.ts'
import { table } from '../print.ts'

export interface Check {
  readonly check: string
  readonly result: 'ok' | 'failed' | 'skipped'
  readonly finding: string
}

/** Requests of programs whose clock is further off are refused, or their orders expire at once. */
const CLOCK_MS = 2_000
const FEED_MS = 10_000
/** 0.0005 of the chain's coin: some deposits. */
const LEAST_GAS = 5n * 10n ** 14n
const SOON_MS = 86_400_000
const OLDEST_NODE = 20

export async function status(context: Context) {
  const client = context.anonymous()
  const service = await client.marketData.status()
  if (context.format !== 'text') return { url: context.place.url, profile: context.place.profile, ...service }
  const rows = service.markets.map(({ symbol, mode, oracle_age_ms, placements, last_batch_id }) => {
    return { symbol, mode, oracle_age_ms, placements, last_batch_id }
  })
  return `${context.place.url} is ${service.status}, chain ${service.chain.chain_id}, block ${service.chain.block}\n${table(rows)}`
}

/** Findings of earlier checks that later checks use. */
interface Findings {
  contracts?: SharedContracts
  me?: Me
  skip?: string
}

type Test = (context: Context, client: Client, findings: Findings) => Promise<string>

/** Thrown by a check that has nothing to test. */
class Skipped extends Error {}

const fail = (problem: string, remedy: string): never => {
  throw new CommandError(`${problem}: ${remedy}`)
}

const CHECKS: Readonly<Record<string, Test>> = {
  node: async () => {
    const [major = 0] = process.versions.node.split('.').map(Number)
    if (major < OLDEST_NODE)
      fail(`Node.js ${process.versions.node}`, `install Node.js ${OLDEST_NODE} or newer`)
    return `Node.js ${process.versions.node}`
  },
  api: async (_context, client, findings) => {
    const markets = await client.marketData.markets()
    findings.contracts = await client.marketData.contracts()
    return `${markets.length} markets, chain ${findings.contracts.chain_id}`
  },
  clock: async (_context, client) => {
    const start = Date.now()
    const { unix_ms } = await client.marketData.time()
    const offset = unix_ms - (start + Date.now()) / 2
    if (Math.abs(offset) > CLOCK_MS)
      fail(`this clock differs by ${Math.round(offset)} ms`, 'synchronize it, for example by enabling NTP')
    return `differs by ${Math.round(offset)} ms`
  },
  feed: async (context, client) => {
    const start = Date.now()
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(
            new CommandError(
              'no message of the live feed within 10 s: let WebSockets to /v0/ws through proxies and firewalls',
            ),
          ),
        FEED_MS,
      )
      const done = () => resolve(clearTimeout(timer))
      client.live.subscribe('system', done)
      context.stopping.addEventListener('abort', done, { once: true })
    })
    return `first message after ${Date.now() - start} ms`
  },
  key: async (context, _client, findings) => {
    findings.me = await context.reader().account.me()
    const { credential, scope, address } = findings.me
    if (scope !== 'trade')
      fail(
        `the ${credential} may only read`,
        'create a key that trades with `clearbatch auth keys create --scope trade`',
      )
    return `${credential} of ${address}, scope ${scope}`
  },
  limits: async (context) => {
    const limits = await context.reader().account.limits()
    const empty = limits.find(({ remaining }) => remaining === 0)
    if (empty !== undefined)
      fail(
        `the limit of ${empty.bucket} is used up`,
        `wait ${empty.reset_seconds} s, and send fewer requests or larger batches`,
      )
    return limits.map(({ bucket, remaining, limit }) => `${bucket} ${remaining}/${limit}`).join(', ')
  },
  'session keys': async (context, _client, { me }) => {
    if (me === undefined) throw new Skipped('needs a credential')
    const signer = await context.signer().catch(() => null)
    const { session_keys: keys } = await context.reader().sessionKeys.list({ status: 'ACTIVE' })
    const own = keys.find(
      ({ session_public_address: key }) => key.toLowerCase() === signer?.address.toLowerCase(),
    )
    if (own === undefined) {
      const isOwner = signer !== null && signer.address.toLowerCase() === me.address.toLowerCase()
      if (signer !== null && !isOwner)
        fail(
          `${signer.address} is neither the account nor an active session key of it`,
          'register it with `clearbatch auth keys register`, or pass the right --key-file',
        )
      return isOwner ? "signs with the account's own key" : `${keys.length} active session keys`
    }
    const left = Date.parse(own.expires_at) - Date.now()
    if (left < SOON_MS)
      fail(
        `the session key expires at ${own.expires_at}`,
        'register a new one with `clearbatch auth keys register`',
      )
    return `session key until ${own.expires_at}`
  },
  rpc: async ({ place }, _client, { contracts }) => {
    if (place.rpcUrl === undefined)
      throw new Skipped('pass --rpc-url to deposit, withdraw, and verify against the chain')
    const chainId = await new Rpc(place.rpcUrl).chainId()
    if (contracts !== undefined && contracts.chain_id !== chainId)
      fail(
        `${place.rpcUrl} is a node of chain ${chainId}`,
        `pass a node of chain ${contracts.chain_id} by --rpc-url`,
      )
    return `chain ${chainId}`
  },
  contracts: async ({ place }, _client, { contracts }) => {
    if (place.rpcUrl === undefined || contracts === undefined) throw new Skipped('needs --rpc-url')
    const rpc = new Rpc(place.rpcUrl)
    const { addressCollateralToken, addressMarginBank, addressAccountManager, addressForwarder } = contracts
    const addresses = { addressCollateralToken, addressMarginBank, addressAccountManager, addressForwarder }
    for (const [name, address] of Object.entries(addresses))
      if ((await rpc.call<string>('eth_getCode', address, 'latest')) === '0x')
        fail(
          `${name} ${address} has no code`,
          'pass a node of the chain of this exchange by --rpc-url, and check its --url',
        )
    return '4 contracts have code'
  },
  gas: async (context, _client, { me }) => {
    const { place } = context
    if (place.rpcUrl === undefined || me === undefined) throw new Skipped('needs --rpc-url and a credential')
    const balance = await new Rpc(place.rpcUrl).number('eth_getBalance', me.address, 'latest')
    if (balance < LEAST_GAS)
      fail(
        `${me.address} has ${balance} wei for gas`,
        'send some of the chain’s coin to it; on test networks run `clearbatch account faucet`',
      )
    return `${balance} wei`
  },
}

/** Every check, also after a failure. Checks that need a failed one are skipped. */
export async function doctor(context: Context) {
  const checks: Check[] = []
  const findings: Findings = {}
  const client = context.anonymous()
  for (const [check, test] of Object.entries(CHECKS))
    checks.push(await run(check, () => test(context, client, findings)))
  const failed = checks.filter(({ result }) => result === 'failed')
  if (failed.length === 0) return checks
  if (context.format === 'text') {
    const colours = { ok: 'green', failed: 'red', skipped: 'dim' } as const
    for (const { check, result, finding } of checks)
      context.terminal.out(
        `${context.terminal.colour(result.padEnd(8), colours[result])}${check.padEnd(14)}${finding}`,
      )
  }
  throw new CommandError(
    `${failed.length} of ${checks.length} checks failed: ${failed.map(({ check }) => check).join(', ')}`,
    EXIT.refused,
    {
      checks,
    },
  )
}

async function run(check: string, test: () => Promise<string>): Promise<Check> {
  try {
    return { check, result: 'ok', finding: await test() }
  } catch (error) {
    if (error instanceof Skipped) return { check, result: 'skipped', finding: error.message }
    const { message } = failureOf(error, 'read')
    const isServer = error instanceof ClearbatchError && error.status >= 500
    return {
      check,
      result: 'failed',
      finding: isServer ? `${message}: the exchange has a fault; try again later` : message,
    }
  }
}
