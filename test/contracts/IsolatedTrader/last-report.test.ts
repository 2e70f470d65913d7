import { expect } from 'chai'
import { encodeSettleBatch } from '../../../domain/settlement/settlement-codec.ts'
import {
  buildPart,
  chain,
  type Exchange,
  type PartInput,
  pair,
  perpetualExchange,
  send,
  settle,
} from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { audit } from '../support/audit.ts'
import { inherit, trade, withBackstop } from '../support/risk.ts'

const PRICE = 500_000

describe('the report that the market used last', () => {
  let exchange: Exchange
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
  })

  const plain = (input: Partial<PartInput> = {}): PartInput => {
    const [alice, bob] = exchange.users
    return { price: PRICE, fills: pair(alice!, bob!, 10), ...input }
  }
  const unproven = async (input: PartInput) => {
    const part = await buildPart(exchange, input)
    const bare = { ...part, oracle: { ...part.oracle, signatures: '0x' as const } }
    return send(exchange, encodeSettleBatch(bare, exchange.spec))
  }
  const lastObservedAt = async (): Promise<number> =>
    Number((await exchange.trader.lastReference()).observedAt)

  it('when another batch uses it, no proof is needed', async () => {
    await settle(exchange, plain())
    const observedAt = await lastObservedAt()
    await unproven(plain({ observedAt }))
    expect(await lastObservedAt()).to.equal(observedAt)
    await audit(exchange)
  })

  it('when further parts of a batch use it, no proof is needed', async () => {
    const first = await buildPart(exchange, plain({ parts: 2 }))
    await send(exchange, encodeSettleBatch(first, exchange.spec))
    const { batchId, asOf } = first
    await unproven(plain({ batchId, asOf, part: 2, parts: 2, observedAt: first.oracle.observedAt }))
    await audit(exchange)
  })

  it('when an inheritance uses it, no proof is needed', async () => {
    const [carol, dave] = [exchange.users[2]!, exchange.users[3]!]
    await withBackstop(exchange, e18('1000000000'), e18('100000'))
    await trade(exchange, carol, dave, { steps: 1_000, price: PRICE })
    await settle(exchange, plain({ price: 484_000, fills: pair(exchange.users[0]!, exchange.users[1]!, 10) }))
    const known = { price: e18('48400'), observedAt: await lastObservedAt(), signers: [] }
    await expect(inherit(exchange, carol, known)).to.emit(exchange.trader, 'PositionInherited')
    await audit(exchange)
  })

  it('when a newer report has no proof, it reverts with ProofLengthWrong', async () => {
    await settle(exchange, plain())
    await expect(unproven(plain())).to.be.revertedWithCustomError(exchange.oracle, 'ProofLengthWrong')
  })

  it('when another price is given for its time, it reverts with ReportConflict', async () => {
    await settle(exchange, plain())
    const other = plain({ oraclePrice: e18('50001'), observedAt: await lastObservedAt() })
    await expect(unproven(other)).to.be.revertedWithCustomError(exchange.trader, 'ReportConflict')
  })

  it('when no report was ever used, an empty report reverts with ReportPriceInvalid', async () => {
    const nothing = plain({ oraclePrice: 0n, observedAt: 0 })
    await expect(unproven(nothing)).to.be.revertedWithCustomError(exchange.trader, 'ReportPriceInvalid')
  })

  it('when it exceeds the maximum age, it reverts with ReportStale', async () => {
    await settle(exchange, plain())
    const observedAt = await lastObservedAt()
    await exchange.connection.networkHelpers.time.increase(11)
    await expect(unproven(plain({ observedAt }))).to.be.revertedWithCustomError(
      exchange.trader,
      'ReportStale',
    )
  })
})

describe('a newly set backstop', () => {
  it('has an initialized position slot and zero floors', async () => {
    const exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    const backstop = await withBackstop(exchange, e18('1000000'), 0n)
    const { hasFloors, leverage, size } = await exchange.trader.position(backstop)
    expect([hasFloors, leverage, size]).to.deep.equal([true, 0n, 0n])
    const { settled, requested, marginNonce } = await exchange.trader.floors(backstop)
    expect([settled, requested, marginNonce]).to.deep.equal([0n, 0n, 0n])
  })
})
