/** The commands of `clearbatch ops market …` on a chain and a database of their own. */
import { expect } from 'chai'
import { HDNodeWallet } from 'ethers'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import { ChainFixture, useChain } from '../keeper/support/chain-fixture.ts'
import { perpetual, rate } from '../support/markets.ts'
import { captureOps } from './support/captured-ops.ts'

const DAY_MS = 86_400_000
const KEY = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk').privateKey
const iso = (at: number): string => new Date(at).toISOString()

describe('clearbatch ops market', function () {
  this.timeout(300_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  beforeEach(async () => {
    fixture = await ChainFixture.openOn(chain())
    await fixture.follow()
  })
  afterEach(() => fixture.close())

  /** Of all commands: no output may contain the key. */
  let printed = ''
  before(() => {
    printed = ''
  })
  after(() => {
    expect(printed).to.not.include(KEY.slice(2))
  })

  async function ops(command: string, flags: readonly string[] = [], env: Record<string, string> = {}) {
    const urls = { RPC_URL: chain().anvil.url, DATABASE_URL: fixture.url, ...(await fixture.serve()) }
    const args = ['market', command, '--market', 'BTC-PERP', ...flags]
    const result = await captureOps(args, { ...urls, OPS_KEY: KEY, ...env })
    printed += result.stdout + result.stderr
    return result
  }

  const headTime = async (): Promise<number> =>
    ((await chain().provider.getBlock('latest'))?.timestamp ?? 0) * 1000
  const pending = () => fixture.trading().pendingChange()

  it('when parameters are scheduled, it prints the transaction; with --send it is mined, and shown as a difference until followed', async () => {
    const from = (await headTime()) + DAY_MS + 600_000
    const flags = ['--max-leverage', '10', '--mtb-long', '0.02', '--from', iso(from)]
    const dry = await ops('schedule', flags)
    expect(dry.stderr).to.equal('')
    expect(dry.code).to.equal(0)
    const { interface: abi } = IsolatedTrader__factory.connect(fixture.spec.trader)
    const calldata = /calldata +(0x[0-9a-f]+)/.exec(dry.stdout)?.[1] as string
    const { name, args } = abi.parseTransaction({ data: calldata }) as NonNullable<
      ReturnType<typeof abi.parseTransaction>
    >
    expect([name, args[0].maxLeverage, args[0].mtbLong, args[1]]).to.deep.equal([
      ...['scheduleParameters', 10n, 20_000n, BigInt(from)],
    ])
    expect(dry.stdout).to.match(/max-leverage +20 -> 10/)
    expect(dry.stdout).to.match(new RegExp(`activeFrom +${from} \\(20..-..-.. ..:..:..`))
    expect(dry.stdout).to.include('parameters (2) of ExchangeAccess')
    expect((await pending()).parametersFrom).to.equal(0n)

    const sent = await ops('schedule', [...flags, '--send'])
    expect(sent.stdout).to.match(/mined\n$/)
    expect(await pending().then(({ parametersFrom }) => parametersFrom)).to.equal(BigInt(from))
    expect((await ops('show')).stdout).to.match(/≠ scheduled parameters/)
    await fixture.follow()
    const followed = (await ops('show')).stdout
    expect(followed).to.match(/then max-leverage +10 +10\n/)
    expect(followed, 'only what changes').to.not.include('then imr')

    const again = await ops('schedule', flags)
    expect([again.code, again.stderr]).to.deep.equal([1, again.stderr])
    expect(again.stderr).to.include('cancel them first')
    expect((await ops('cancel', ['--send'])).stdout).to.match(/mined\n$/)
    expect((await pending()).parametersFrom).to.equal(0n)
  })

  it('when a value or a time is outside its bounds, it names flag, received and valid, and sends nothing', async () => {
    const block = await chain().provider.getBlockNumber()
    const soon = iso((await headTime()) + 60_000)
    for (const [flags, problem] of [
      [['--imr', '0.2'], '--imr must be from 0.03 to 0.05; received 0.2'],
      [['--taker-fee', '0.06'], '--taker-fee must be from 0 to 0.05; received 0.06'],
      [['--mmr', '0.0000001'], '--mmr must be a multiple of 0.000001; received 0.0000001'],
      [['--max-leverage', '10', '--from', soon], `or later; received ${soon}`],
      [[], 'nothing changes: pass at least one of --imr'],
    ] as const) {
      const { code, stdout, stderr } = await ops('schedule', [...flags, '--send'])
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).to.include(problem)
    }
    const unknown = await ops('schedule', ['--leverage', '3'])
    expect([
      unknown.code,
      unknown.stderr.startsWith('unknown flag --leverage of ops market schedule.'),
    ]).to.deep.equal([2, true])
    expect((await pending()).parametersFrom).to.equal(0n)
    expect(await chain().provider.getBlockNumber()).to.be.at.least(block)
  })

  it('when the market is restricted, halted and resumed, the chain and the exchange’s own restriction follow', async () => {
    expect((await ops('restrict', ['--send'])).stdout).to.match(/mined\n$/)
    expect((await pending()).restriction).to.equal(1n)
    expect((await ops('halt', ['--send'])).stdout).to.match(/mined\n$/)
    expect((await pending()).restriction).to.equal(2n)
    await fixture.db.updateTable('markets').set({ mode: 'cancel_only' }).execute()
    const dry = await ops('resume')
    expect(dry.stdout)
      .to.include('scheduleMode')
      .and.to.match(/mode +cancel_only -> open/)
    expect(await fixture.mode()).to.equal('cancel_only')
    expect((await ops('resume', ['--send'])).code).to.equal(0)
    expect(await fixture.mode()).to.equal('open')
    expect((await pending()).modeFrom).to.be.greaterThan(0n)
    await fixture.follow()
    expect((await ops('show')).stdout).to.include('chain and database agree')
  })

  it('when an impact notional is set, the premium is measured at it from then on; values that would be cheap to fake are rejected', async () => {
    const stored = () => fixture.db.selectFrom('markets').select('impact_notional').executeTakeFirstOrThrow()
    expect((await ops('impact', ['--notional', '20000'])).stdout).to.match(/by the rule -> 20000\n/)
    expect((await stored()).impact_notional).to.equal(null)
    expect((await ops('impact', ['--notional', '20000', '--send'])).code).to.equal(0)
    expect((await stored()).impact_notional).to.equal(20_000n * 10n ** 18n)
    for (const notional of ['0', '1000', '99999999'])
      expect((await ops('impact', ['--notional', notional])).stderr).to.include(
        '--notional must be from 1111.1',
      )
    expect((await ops('impact')).stderr).to.include('pass --notional or --rule')
    expect((await ops('impact', ['--rule', '--send'])).stdout).to.match(/20000 -> by the rule\n/)
    expect((await stored()).impact_notional).to.equal(null)
  })

  it('when a close is scheduled, resume says that it drops the close', async () => {
    expect((await ops('delist', ['--send'])).code).to.equal(0)
    expect((await ops('resume')).stdout).to.match(/; the mode settling of .* UTC is dropped\n/)
  })

  it('when the contract would reject a call, the dry run says so, and nothing is sent', async () => {
    expect((await ops('halt', ['--send'])).code).to.equal(0)
    const looser = await ops('restrict')
    expect([looser.code, looser.stderr]).to.deep.equal([1, looser.stderr])
    expect(looser.stderr).to.include('the transaction would be rejected: ModeNotStricter')
    expect(looser.stdout).to.include('transaction that --send would send')
    expect((await ops('restrict', ['--send'])).stderr).to.include('would be rejected')
    expect((await pending()).restriction).to.equal(2n)
  })

  it('when fee periods are announced, they are stored and journaled; a rise without notice and a rate above the highest are rejected', async () => {
    const until = iso(Date.now() + 2 * DAY_MS)
    expect((await ops('fees', ['--maker', '0', '--taker', '0', '--until', until])).code).to.equal(0)
    expect(await fixture.rows('fees_announced')).to.deep.equal([])
    const stored = await ops('fees', ['--maker', '0', '--taker', '0', '--until', until, '--send'])
    expect(stored.stderr).to.equal('')
    const [row] = await fixture.rows('fees_announced')
    expect(row.fee_periods).to.have.length(1)
    expect(row.fee_periods[0]).to.include({ maker: '0', taker: '0', until: Date.parse(until) })
    expect((await ops('show')).stdout).to.include('charged: maker 0, taker 0 until')
    const early = await ops('fees', ['--end', '--send'])
    expect([early.code, early.stderr]).to.deep.equal([1, early.stderr])
    expect(early.stderr).to.include('a rise needs a day of notice')
    const high = await ops('fees', ['--maker', '0', '--taker', '0.01', '--send'])
    expect(high.stderr).to.include('--taker must be from 0 to 0.0005, the highest that the contract allows')
    expect(rate('0.0005')).to.equal(fixture.spec.takerFee)
  })

  it('when key, market or connection are missing, it says which and what to pass', async () => {
    const readOnly = await ops('restrict', [], { OPS_KEY: '' })
    expect(readOnly.stdout).to.include('a holder of the role guardian')
    expect((await ops('restrict', ['--send'], { OPS_KEY: '' })).stderr).to.include('--send needs a key')
    expect((await ops('restrict', [], { OPS_KEY: '0x12' })).stderr).to.include('OPS_KEY is no private key')
    expect((await ops('show', [], { RPC_URL: '' })).stderr).to.include('RPC_URL is not set')
    expect((await ops('show', ['--market', 'ETH-PERP'])).stderr).to.include(
      '--market must be one of BTC-PERP',
    )
    const nothing = await ops('open')
    expect([nothing.code, nothing.stderr.startsWith('unknown command open after ops market.')]).to.deep.equal(
      [2, true],
    )
  })
})
