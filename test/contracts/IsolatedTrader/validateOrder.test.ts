import { expect } from 'chai'
import { type SignedOrder, triggerCondition } from '../../../domain/orders/order.ts'
import { hashOrder, packFlags } from '../../../domain/orders/order-hash.ts'
import { ONE } from '../../../domain/units.ts'
import {
  buildPart,
  caller,
  chain,
  type Exchange,
  type FillInput,
  keccak,
  nextSecond,
  orderOf,
  pair,
  perpetualExchange,
  settle,
  signedFills,
  signOrder,
  wallet,
  word,
} from '../../support/exchange.ts'

const SALT = 5n

describe('hashOrder and validateOrder', () => {
  let exchange: Exchange
  let alice: string

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    alice = exchange.users[0]!.address
  })

  const sign = (input: Partial<FillInput> = {}): SignedOrder => {
    const by = exchange.users[0]!
    const order = orderOf({ by, side: 'LONG', fill: 1000, salt: SALT, ...input }, 500_000, exchange.spec)
    return signOrder(order, exchange.spec, input.signer ?? by)
  }
  /** The order in the form of the contract's ABI. */
  const struct = (order: SignedOrder) => ({
    flags: `0x${packFlags(order).toString(16).padStart(16, '0')}`,
    quantity: BigInt(order.quantity) * exchange.spec.step,
    price: BigInt(order.price) * exchange.spec.tick,
    triggerPrice: BigInt(order.trigger) * exchange.spec.tick,
    triggerCondition: triggerCondition(order.type, order.side),
    leverage: BigInt(order.leverage) * ONE,
    maker: order.maker,
    expiration: order.expiration,
  })
  const now = async () => (await nextSecond(exchange)) * 1000
  const validate = async (order: SignedOrder, change: object = {}, signature: string = order.signature) =>
    exchange.trader.validateOrder({ ...struct(order), ...change }, signature, await now())
  const refused = async (call: Promise<unknown>, error: string, ...args: unknown[]) => {
    const assertion = expect(call).to.be.revertedWithCustomError(exchange.trader, error)
    await (args.length > 0 ? assertion.withArgs(...args) : assertion)
  }

  it('returns the same digest as domain/', async () => {
    const order = sign({ reduceOnly: true, type: 'STOP_LIMIT', trigger: 7 })
    expect(await exchange.trader.hashOrder(struct(order))).to.equal(hashOrder(order, exchange.spec, keccak))
  })
  it('when the order is valid, it returns digest and signer', async () => {
    const order = sign()
    const [hash, signer] = await validate(order)
    expect([hash, signer]).to.deep.equal([order.hash, alice])
  })
  it('when a session key signed, it returns the key as signer', async () => {
    const key = wallet('session key')
    await exchange.keys.connect(await caller(exchange, exchange.users[0]!)).registerSessionKey(key.address, 3)
    expect((await validate(sign({ signer: key })))[1]).to.equal(key.address)
  })
  it('when an unauthorized account signed, it reverts with SignerUnauthorized', () =>
    refused(
      validate(sign({ signer: wallet('unauthorized') })),
      'SignerUnauthorized',
      alice,
      SALT,
      wallet('unauthorized').address,
    ))

  it('when a field is off the grid or exceeds the record, it reverts with AmountOffGrid', async () => {
    const { tick, step } = exchange.spec
    await refused(validate(sign(), { quantity: step + 1n }), 'AmountOffGrid', step + 1n, step)
    await refused(validate(sign(), { price: tick + 1n }), 'AmountOffGrid', tick + 1n, tick)
    await refused(validate(sign(), { triggerPrice: 1n }), 'AmountOffGrid', 1n, tick)
    await refused(validate(sign(), { leverage: ONE + 1n }), 'AmountOffGrid', ONE + 1n, ONE)
    await refused(validate(sign(), { expiration: 1n << 40n }), 'AmountOffGrid', 1n << 40n, 1)
  })
  it('when the quantity is zero, it reverts with ZeroFill', () =>
    refused(validate(sign(), { quantity: 0 }), 'ZeroFill', alice, SALT))
  it('when reserved flag bits are set, it reverts with ReservedBits', () =>
    refused(validate(sign(), { flags: '0x0000000000000054' }), 'ReservedBits', alice, SALT))
  it('when the signature has a wrong length, suffix, v or r, it reverts with the error for that case', async () => {
    const { signature } = sign()
    await refused(validate(sign(), {}, signature.slice(0, -2)), 'SignatureLengthWrong', 66, 65)
    await refused(validate(sign(), {}, `${signature.slice(0, -2)}00`), 'SignatureSuffixWrong', 0)
    await refused(validate(sign(), {}, `${signature.slice(0, -4)}1d01`), 'SignatureInvalid', alice, SALT)
    await refused(validate(sign(), {}, `${signature.slice(0, -4)}1a01`), 'SignatureInvalid', alice, SALT)
    await refused(validate(sign(), {}, `${word(0)}${signature.slice(66)}`), 'SignatureInvalid', alice, SALT)
  })
  it('when leverage, trigger or expiration would fail settlement, it reverts with the same error', async () => {
    await refused(validate(sign({ leverage: 21 })), 'LeverageOutOfRange', alice, SALT, 20, 21)
    await refused(
      validate(sign({ type: 'TAKE_PROFIT_LIMIT', trigger: 7 })),
      'TriggerEncoding',
      alice,
      SALT,
      2,
      7,
    )
    await refused(validate(sign({ expiration: 9 })), 'OrderExpired')
    const second = await nextSecond(exchange)
    await refused(validate(sign({ expiration: second - 1 })), 'OrderExpired')
    await validate(sign({ expiration: second + 1 }))
  })
  it('when the expiration is the latest possible or a trigger is set, it is valid', async () => {
    await validate(sign({ expiration: 2 ** 40 - 1 }))
    for (const type of ['STOP_LIMIT', 'TAKE_PROFIT_LIMIT'] as const) {
      for (const side of ['LONG', 'SHORT'] as const) {
        await validate(sign({ type, side, trigger: 7, reduceOnly: true }))
      }
    }
  })
  it('when the trigger condition exceeds the record’s field, it reverts with TriggerEncoding', () =>
    refused(validate(sign(), { triggerCondition: 4 }), 'TriggerEncoding', alice, SALT, 4, 0))
  it('when the salt is dead, cancelled or below the floor, it reverts with OrderDead or OrderCancelled', async () => {
    const [by, bob] = exchange.users
    await settle(exchange, { price: 500_000, fills: pair(by!, bob!, 10, { salt: 1n }) })
    const trader = exchange.trader.connect(await caller(exchange, by!))
    await trader.cancelSalts([2])
    await trader.cancelSaltsBelow(4)
    await exchange.connection.networkHelpers.time.increase(6)
    await refused(validate(sign({ salt: 1n })), 'OrderDead', alice, 1)
    await refused(validate(sign({ salt: 2n })), 'OrderCancelled')
    await refused(validate(sign({ salt: 3n })), 'OrderCancelled')
    await validate(sign({ salt: 4n }))
  })
  it('returns the digest under which the same order settles', async () => {
    const part = await buildPart(exchange, {
      price: 500_000,
      fills: pair(exchange.users[0]!, exchange.users[1]!, 5),
    })
    for (const { order } of signedFills(part)) expect((await validate(order))[0]).to.equal(order.hash)
  })
})
