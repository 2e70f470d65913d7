/** The commands of operators on an exchange that an engine owns: each change is a command to the engine's process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { FoundMismatch } from '../../domain/exchange/decide/chain/fact-context.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { PROTECTION_NOTICE } from '../../domain/market/price-protection.ts'
import { ask } from '../../keeper/engine/link/engine.ts'
import { runCli } from '../cli/support/run-cli.ts'
import { useChain } from '../keeper/support/chain-fixture.ts'
import { EngineCluster } from '../keeper/support/engine-process.ts'
import { e18, perpetual } from '../support/markets.ts'
import { listMarket } from '../support/rows/markets.ts'
import { captureOps } from './support/captured-ops.ts'

const GUARD = 'ENGINE_URL is not set: the command cannot start without it\n'
const DAY_MS = 86_400_000
const FREE = ['market', 'fees', '--market', 'BTC-PERP', '--maker', '0', '--taker', '0']
const IMPACT = ['market', 'impact', '--market', 'BTC-PERP', '--notional', '20000']
const RESUME = ['market', 'resume', '--market', 'BTC-PERP']
const ASSIGN = ['calendar', 'assign', '--market', 'BTC-PERP', '--calendar', 'NYSE']
const WIDTH = ['--market', 'BTC-PERP', '--protection', '0.02']

describe('operators’ commands on an exchange that an engine owns', function () {
  this.timeout(300_000)
  const chain = useChain(perpetual)
  let cluster: EngineCluster
  before(async () => {
    cluster = await EngineCluster.create()
    await listMarket(cluster.db, chain().spec)
    await cluster.start()
  })
  after(() => cluster.stop())

  type Env = Readonly<Record<string, string>>
  const engine = (): Env => ({ ...cluster.environment, RPC_URL: chain().anvil.url })
  const withoutEngine = (): Env => ({ ...engine(), ENGINE_URL: '' })
  const ops = (args: readonly string[], env = engine()) => captureOps(args, env)
  const setProtection = (env = engine()) => runCli(['db', 'set-protection', ...WIDTH], { env })
  const market = () => cluster.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
  const rows = async (): Promise<JournalRow[]> =>
    (
      await cluster.db.selectFrom('journal').select('row').where('shard', '=', 'm1').orderBy('seq').execute()
    ).map(({ row }) => row)
  /** Rows behind those listed before. */
  async function rowsBehind(before: readonly JournalRow[]): Promise<JournalRow[]> {
    const all = await rows()
    expect(all.slice(0, before.length)).to.deep.equal(before)
    return all.slice(before.length)
  }
  let blocks = 0
  /** A block in which a settlement has failed that the exchange expected to succeed. */
  async function mismatch(): Promise<void> {
    const hash = (number: number) => `0x${number.toString(16).padStart(64, '0')}`
    const from = ++blocks
    const block = { number: from, hash: hash(from), parentHash: hash(from - 1), timestamp: from }
    const found: FoundMismatch = {
      marketId: 1,
      txHash: hash(99),
      batchId: 1,
      part: 1,
      kind: 'unexpected_action_terms',
      reason: 'reverted',
    }
    const command = {
      kind: 'apply_block',
      block,
      from,
      facts: [],
      silent: [found],
      positions: [],
      gasUsed: new Map(),
    } as const
    const ingest = await cluster.connect('ingest')
    expect(await ask<'apply_block'>(ingest, command, 15_000)).to.deep.equal({
      kind: 'done',
      nextBlock: from + 1,
    })
    expect((await market()).mode).to.equal('cancel_only')
  }

  it('when fees are announced, the dry run and the stored schedule are printed as without an engine', async () => {
    const before = await rows()
    const dry = await ops([...FREE, '--until', '2035-01-01T00:00:00Z'])
    expect([dry.code, dry.stderr]).to.deep.equal([0, ''])
    expect(dry.stdout).to.match(/change of the database that --send would make/)
    expect(await rowsBehind(before)).to.deep.equal([])

    const sent = await ops([...FREE, '--until', '2035-01-01T00:00:00Z', '--send'])
    expect([sent.code, sent.stderr]).to.deep.equal([0, ''])
    expect(sent.stdout).to.match(
      /^stored[\s\S]*fee periods +maker 0, taker 0, .* UTC to 2035-01-01 00:00:00 UTC\n/,
    )
    const [row] = await rowsBehind(before)
    expect(row).to.deep.include({ kind: 'fees_announced' })
    expect((await market()).fee_periods).to.deep.equal(row?.kind === 'fees_announced' && row.fee_periods)
    const until = '2034-01-01T00:00:00Z'
    const early = await ops(['market', 'fees', '--market', 'BTC-PERP', '--end', '--until', until, '--send'])
    expect([early.code, early.stderr]).to.deep.equal([1, early.stderr])
    expect(early.stderr).to.match(
      /^the (maker|taker) rate would rise before .*: a rise needs a day of notice\n$/,
    )
    expect(await rowsBehind(before)).to.have.length(1)
  })

  it('when an impact notional is set, the engine stores it', async () => {
    const before = await rows()
    expect((await ops(IMPACT)).stdout).to.match(/by the rule -> 20000\n/)
    expect(await rowsBehind(before)).to.deep.equal([])
    const sent = await ops([...IMPACT, '--send'])
    expect([sent.code, sent.stderr]).to.deep.equal([0, ''])
    expect((await market()).impact_notional).to.equal(e18('20000'))
    expect(await rowsBehind(before)).to.deep.equal([
      { kind: 'impact_notional_set', notional: e18('20000').toString() },
    ])
    expect((await ops(['market', 'impact', '--market', 'BTC-PERP', '--rule', '--send'])).stdout).to.match(
      /20000 -> by the rule\n/,
    )
    expect((await market()).impact_notional).to.equal(null)
  })

  it('when a market is resumed, the engine lifts the restriction', async () => {
    await mismatch()
    const before = await rows()
    const sent = await ops([...RESUME, '--send'])
    expect([sent.code, sent.stderr]).to.deep.equal([0, ''])
    expect(sent.stdout).to.match(/mode +cancel_only -> open\n/)
    expect(await rowsBehind(before)).to.deep.equal([
      { kind: 'market_restricted', mode: 'open', why: 'operator' },
    ])
    expect((await market()).mode).to.equal('open')
  })

  it('when a calendar is assigned, the engine stores it, and exceptions are written without it', async () => {
    const before = await rows()
    const sent = await ops([...ASSIGN, '--send'])
    expect(sent).to.deep.equal({
      code: 0,
      stdout: 'BTC-PERP: calendar NYSE instead of none\nWritten. Running processes apply it within 5 s.\n',
      stderr: '',
    })
    expect((await market()).calendar).to.equal('NYSE')
    expect(await rowsBehind(before)).to.deep.equal([{ kind: 'calendar_set', calendar: 'NYSE' }])
    const closure = ['calendar', 'add', '--date', '2026-11-20', '--hours', 'closed', '--reason', 'Mourning']
    expect((await ops([...closure, '--send'], withoutEngine())).code).to.equal(0)
  })

  it('when a width of price protection is announced, the engine stores it for a day ahead', async () => {
    const before = await rows()
    const { code, out, err } = await setProtection()
    expect([code, err]).to.deep.equal([0, ''])
    const { next_price_protection: width, next_price_protection_at: at } = await market()
    expect(width).to.equal(e18('0.02'))
    expect((at as number) - Date.now()).to.be.within(
      PROTECTION_NOTICE - DAY_MS / 100,
      PROTECTION_NOTICE + 1_000,
    )
    expect(out).to.equal(
      `BTC-PERP: price protection 0.01 in force, announced 0.02 from ${new Date(at as number).toISOString()} on\n`,
    )
    expect((await rowsBehind(before)).map(({ kind }) => kind)).to.deep.equal(['protection_announced'])
  })

  it('when no engine is named, every change ends with the missing variable, and nothing is written', async () => {
    await mismatch()
    const before = [await rows(), await market()]
    for (const args of [FREE, IMPACT, RESUME, ASSIGN]) {
      const { code, stderr } = await ops([...args, '--send'], withoutEngine())
      expect([args[1], code, stderr]).to.deep.equal([args[1], 1, GUARD])
    }
    const { code, err } = await setProtection(withoutEngine())
    expect([code, err]).to.deep.equal([1, GUARD])
    expect([await rows(), await market()]).to.deep.equal(before)
  })

  it('when the key or the address of the engine is wrong, the command names the reason and nothing is written', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ops-'))
    const keys = (content: object): string => {
      const file = join(folder, `${Object.keys(content).join('-')}.json`)
      writeFileSync(file, JSON.stringify(content))
      return file
    }
    const before = await rows()
    const wrong: readonly [Env, string][] = [
      [{ ENGINE_KEYS_FILE: keys({ operator: '0'.repeat(64) }) }, 'engine and client do not fit together'],
      [{ ENGINE_KEYS_FILE: keys({ api: '0'.repeat(64) }) }, 'has no key for the role operator'],
      [{ ENGINE_URL: join(folder, 'none') }, 'connection to the engine failed, ENOENT'],
      [{ ENGINE_URL: 'nowhere' }, 'expected the path of a socket, or host:port'],
    ]
    for (const [env, problem] of wrong) {
      const { code, stderr } = await ops([...ASSIGN, '--send'], { ...engine(), ...env })
      expect(stderr).to.include(problem)
      expect(code).to.equal(1)
    }
    expect(await rowsBehind(before)).to.deep.equal([])
    rmSync(folder, { recursive: true })
  })
})
