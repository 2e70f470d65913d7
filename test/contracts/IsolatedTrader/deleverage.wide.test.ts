/** Sizes beyond the width of a fill: a position grows over several fills. */
import { expect } from 'chai'
import { SettlementLens__factory } from '../../../typechain-types/factories/SettlementLens__factory.ts'
import { type FillInput, nextSecond, settle, wallet, wideExchange } from '../../support/exchange.ts'
import { audit } from '../support/audit.ts'
import { deleverage } from '../support/risk.ts'
import { fresh } from '../support/wind-down.ts'

const alice = wallet('alice')
const bob = wallet('bob')
const FILLS = 4
/** The largest fill of a record. */
const FILL = 2 ** 48 - 1
const STEPS = BigInt(FILLS * FILL)

describe('deleveraging of a position above 2^48 steps', () => {
  it('when more steps close than a fill can have, event and preview have as many steps as the positions lose', async () => {
    const exchange = await fresh(wideExchange)
    const { trader } = exchange
    const fills = (by: typeof alice, side: FillInput['side'], leverage: number): FillInput[] =>
      Array.from({ length: FILLS }, () => ({ by, side, fill: FILL, leverage }))
    await settle(exchange, { price: 1_000, fills: [...fills(alice, 'LONG', 20), ...fills(bob, 'SHORT', 5)] })
    expect((await trader.position(alice.address)).size).to.equal(STEPS)

    const price = 940n * exchange.spec.tick
    const lens = await new SettlementLens__factory(exchange.admin).deploy()
    const asOf = (await nextSecond(exchange)) * 1000
    const preview = await lens.previewDeleveraging(trader, alice, [bob.address], [STEPS], price, asOf)
    expect(preview.legs.map((leg) => leg.steps)).to.deep.equal([STEPS])
    const sent = await deleverage(exchange, alice, [{ of: bob, steps: STEPS }], { price })
    const receipt = await sent.wait()
    const event = receipt?.logs
      .map((log) => trader.interface.parseLog(log))
      .find((log) => log?.name === 'PositionsDeleveraged')
    const [[counterparty, steps]] = event!.args.legs
    expect([counterparty, steps]).to.deep.equal([bob.address, STEPS])
    expect((await trader.position(alice.address)).size).to.equal(0n)
    expect((await trader.position(bob.address)).size).to.equal(0n)
    await audit(exchange)
  })
})
