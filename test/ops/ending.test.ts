/** The commands of `clearbatch ops market …` that end a market, on a chain and a database of their own. */
import { expect } from 'chai'
import { HDNodeWallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { statedPrices } from '../../db/market-endings.ts'
import { ChainFixture, useChain } from '../keeper/support/chain-fixture.ts'
import { EndingFixture } from '../keeper/support/ending-fixture.ts'
import type { Trader } from '../keeper/support/market-fixture.ts'
import { future, price } from '../support/markets.ts'
import { captureOps } from './support/captured-ops.ts'

const DAY_MS = 86_400_000
const KEY = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk').privateKey

describe('clearbatch ops market, for the end of a market', function () {
  this.timeout(90_000)
  const chain = useChain(future)
  let fixture: ChainFixture
  let ending: EndingFixture
  let alice: Trader
  let bob: Trader
  beforeEach(async () => {
    fixture = await ChainFixture.openOn(chain())
    ending = await EndingFixture.open(fixture)
    await fixture.report(200)
    alice = await fixture.depositor('alice')
    bob = await fixture.depositor('bob')
    await fixture.place({ by: alice, side: 'LONG', steps: 20, limit: 200 })
    await fixture.place({ by: bob, side: 'SHORT', steps: 20, limit: 200 })
    await fixture.auction().run()
    await ending.until(async () => (await ending.openPositions()) === 2)
  })
  afterEach(() => fixture.close())

  const ops = (command: string, ...flags: readonly string[]) =>
    captureOps(['market', command, '--market', fixture.spec.symbol, ...flags], {
      ...{ RPC_URL: chain().anvil.url, DATABASE_URL: fixture.url, OPS_KEY: KEY },
    })

  const STATED = ['--by', 'ann', '--reason', 'annual report'] as const
  const stated = async () =>
    (await statedPrices(fixture.db, fixture.spec.marketId)).map((each) => [
      ...[each.price, each.by, each.reason],
    ])

  it('when a final price is stated, it is only printed without --send, and then kept with its author and reason', async () => {
    const dry = await ops('final-price', '--price', '110', ...STATED)
    expect([dry.code, dry.stderr]).to.deep.equal([0, ''])
    expect(dry.stdout).to.match(/final price +110\n +by +ann\n +reason +annual report\n/)
    expect(dry.stdout).to.match(/effect +the keeper reports it at the close, 2033-05-18/)
    expect(await stated()).to.deep.equal([])
    expect((await ops('final-price', '--price', '110', ...STATED, '--send')).code).to.equal(0)
    const again = await ops('final-price', '--price', '120', '--by', 'bea', '--reason', 'typo', '--send')
    expect(again.stdout).to.match(/^stated before: 110 by ann, .*: annual report\n/)
    expect(await stated()).to.deep.equal([
      [price('120'), 'bea', 'typo'],
      [price('110'), 'ann', 'annual report'],
    ])
  })

  it('when a final price is out of bounds or too late, it names the bound and stores nothing', async () => {
    const low = await ops('final-price', '--price', '0.5', ...STATED, '--send')
    expect([low.code, low.stderr]).to.deep.equal([1, '--price must be from 1 to 100000000; received 0.5\n'])
    const long = await ops('final-price', '--price', '5', '--by', 'ann', '--reason', 'x'.repeat(201))
    expect(long.stderr).to.equal('--reason must have at most 200 characters; received 201\n')
    await ending.close()
    await ending.publish('final', price('110'))
    await ending.until(async () => (await ending.market()).final_report !== null)
    const disputed = await ops('final-price', '--price', '115', ...STATED)
    expect(disputed.stdout).to.match(
      /effect +the keeper reports it within a minute, in place of 110, which is/,
    )
    await ending.passTime(DAY_MS + 10_000)
    const late = await ops('final-price', '--price', '115', ...STATED, '--send')
    expect(late.stderr).to.match(/^the dispute window ended 20.* UTC: the market ends at 110\n$/)
    await ending.until(async () => (await ending.market()).mode === 'settled')
    const ended = await ops('final-price', '--price', '115', ...STATED, '--send')
    expect(ended.stderr).to.match(/^the market ended 20.* UTC at 110\n$/)
    expect(await stated()).to.deep.equal([])
  })

  it('when it is too early for a call, the command says what the contract would revert with', async () => {
    expect((await ops('freeze')).stderr).to.equal('the transaction would be rejected: FreezeNotRequested()\n')
    expect((await ops('report-insolvent')).stderr).to.match(/^ACME-VALUATION has not ended/)
    expect((await ops('claim')).stderr).to.match(/^ACME-VALUATION has not ended/)
    expect((await ops('claim', '--account', 'alice')).stderr).to.equal(
      '--account must be an address; received "alice"\n',
    )
  })

  it('when a silent market is frozen and paid out by commands alone, all is printed first, and shown', async () => {
    await ending.passTime(20_000)
    const dry = await ops('freeze-request')
    expect([dry.code, dry.stderr]).to.deep.equal([0, ''])
    expect(dry.stdout).to.match(
      /^transaction that --send would send\n +to +0x.*\n +function +requestFreeze\(\)\n/,
    )
    expect(Number((await fixture.trading().windDown()).requestedAt)).to.equal(0)
    expect((await ops('freeze-request', '--send')).stdout).to.match(/mined\n$/)
    await ending.passTime(DAY_MS + 10_000)
    // At 130 bob's margin of 4 is short by 2.
    const { price: last, observedAt, signatures: proof } = await ending.publish('index', price('130'))
    // The commands have sent with the same key.
    chain().admin.reset()
    const market = fixture.trading().connect(chain().admin)
    await (await market.poke({ price: last, observedAt, proof })).wait()
    expect((await ops('freeze', '--send')).stdout).to.match(/mined\n$/)
    chain().admin.reset()
    await fixture.follow()
    expect((await ops('report-insolvent')).stderr).to.match(/^the read model lacks rows of ACME-VALUATION/)
    await ending.follow()

    const deficits = await ops('report-insolvent', '--send')
    expect(deficits.stdout).to.match(new RegExp(`${bob.wallet.address.toLowerCase()} +deficit 2 USDM\n`))
    await ending.follow()
    expect((await ops('report-insolvent')).stderr).to.match(
      /^no open position of ACME-VALUATION has a deficit/,
    )
    expect((await ops('claim')).stderr).to.match(
      /would be rejected: ClaimEarly\(availableAfter \d+ \(20\d\d-.* UTC\)\)\n$/,
    )
    await ending.passTime(3 * DAY_MS + 60_000)
    expect((await ops('claim')).stdout).to.match(/pays its position of 10 USDM, less the haircut/)
    expect(await ending.openPositions()).to.equal(1)
    expect((await ops('claim', '--send')).stdout).to.match(/mined\n$/)
    await ending.follow()
    expect((await ops('claim')).stderr).to.match(/^no open position of ACME-VALUATION has a claim/)
    const again = await ops('claim', '--account', alice.wallet.address)
    expect(again.stderr).to.match(/would be rejected: NothingToClaim\(account 0x/)
    const { stdout } = await ops('show')
    expect(stdout).to.match(
      / {2}reported deficits +2 USDM +2 USDM\n {2}claims pay +0\.8 of their value +0\.8 of/,
    )
    expect(stdout).to.match(/chain and database agree\n$/)
    chain().admin.reset()
  })
})
