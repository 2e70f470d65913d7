import { expect } from 'chai'
import { ZeroAddress } from 'ethers'
import type { OrderType } from '../../../domain/orders/order.ts'
import { encodeSettleBatch, HEADER_BYTES } from '../../../domain/settlement/settlement-codec.ts'
import {
  addressOf,
  buildPart,
  caller,
  chain,
  type Exchange,
  type FillInput,
  nextSecond,
  type PartInput,
  pair,
  perpetualExchange,
  send,
  settle,
  wallet,
} from '../../support/exchange.ts'
import {
  expectPartRefused,
  expectRefused,
  expectRejected,
  type Refusal,
  withBitFlipped,
  withBytes,
} from '../../support/refusals.ts'
import { audit } from '../support/audit.ts'

const PRICE = 500_000
const SALT = 77n
/** Offsets of the first record's fields. The optional fields follow the signature. */
const AT = {
  maker: 64,
  fill: 84,
  leverage: 90,
  flags: 91,
  price: 98,
  expiration: 103,
  tail: 108,
  r: 110,
  s: 142,
  optional: 174,
}

describe('settleBatch: checks per order', () => {
  let exchange: Exchange
  let maker: string

  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    maker = exchange.users[0]!.address
  })
  afterEach(() => audit(exchange))

  /** The maker's order as given, and another account's plain order on the opposite side. */
  const against = (input: Partial<FillInput> = {}, price = PRICE): PartInput => {
    const [by, other] = exchange.users
    const mine: FillInput = { by: by!, side: 'LONG', fill: 1000, salt: SALT, ...input }
    const fill = mine.quantity === undefined ? mine.fill : Math.min(mine.quantity, mine.fill)
    const theirs: FillInput = {
      by: other!,
      side: mine.side === 'LONG' ? 'SHORT' : 'LONG',
      fill,
      taker: Math.max(0, fill - (mine.taker ?? (mine.side === 'LONG' ? mine.fill : 0))),
    }
    return { price, fills: [mine, theirs] }
  }
  const refused = (
    input: Partial<FillInput>,
    error: string,
    args: readonly unknown[] = [],
    change?: (bytes: Uint8Array) => Uint8Array,
  ) => expectPartRefused(exchange, against(input), { error, args: [maker, SALT, ...args] }, change)

  describe('record encoding', () => {
    it('when a reserved flag bit is set, it reverts with ReservedBits', async () => {
      for (const value of [4, 8]) {
        const flags = Number(SALT << 4n) + 1 + value
        await expectPartRefused(
          exchange,
          against(),
          { error: 'ReservedBits', args: [maker, SALT] },
          (bytes) => withBytes(bytes, AT.flags + 5, flags >> 8, flags & 255),
        )
      }
    })
    it('when the fill is zero, it reverts with ZeroFill', () =>
      refused({ quantity: 1000, fill: 0 }, 'ZeroFill'))
    it('when the taker share exceeds the fill, it reverts with TakerAboveFill', () =>
      refused({ taker: 1001 }, 'TakerAboveFill', [1000, 1001]))
  })

  describe('signed limits', () => {
    it('when a buy clears above its limit, it reverts with LimitViolated', () =>
      refused({ limit: PRICE - 1 }, 'LimitViolated', [PRICE - 1, PRICE]))
    it('when a sell clears below its limit, it reverts with LimitViolated', () =>
      refused({ side: 'SHORT', limit: PRICE + 1 }, 'LimitViolated', [PRICE + 1, PRICE]))
    it('when leverage is zero, it reverts with LeverageOutOfRange', () =>
      refused({ leverage: 0 }, 'LeverageOutOfRange', [20, 0]))
    it('when leverage exceeds the market’s maximum, it reverts with LeverageOutOfRange', () =>
      refused({ leverage: 21 }, 'LeverageOutOfRange', [20, 21]))
    it('when it has expired, it reverts with OrderExpired', async () => {
      const second = await nextSecond(exchange)
      await refused({ expiration: second - 1 }, 'OrderExpired', [second - 1, second * 1000])
    })
    it('when it expires in the second of asOf, it settles', async () => {
      await settle(exchange, against({ expiration: await nextSecond(exchange) }))
    })
    it('when it never expires, it settles', () => settle(exchange, against({ expiration: 0 })))
  })

  describe('trigger fields', () => {
    const condition = (value: number) => (bytes: Uint8Array) => withBytes(bytes, AT.optional, value)
    const noTrigger = (bytes: Uint8Array) => withBytes(bytes, AT.optional + 1, 0, 0, 0, 0, 0)

    for (const type of ['STOP_MARKET', 'STOP_LIMIT'] as OrderType[]) {
      for (const side of ['LONG', 'SHORT'] as const) {
        it(`when it is a ${side} ${type} with valid trigger fields, it settles`, () =>
          settle(
            exchange,
            against({ side, type, trigger: PRICE, limit: type === 'STOP_MARKET' ? 0 : PRICE }),
          ))
      }
    }
    it('when a condition has no trigger, it reverts with TriggerEncoding', () =>
      refused({ type: 'STOP_LIMIT', trigger: 9 }, 'TriggerEncoding', [1, 0], noTrigger))
    it('when a trigger order has no condition, it reverts with TriggerEncoding', () =>
      refused({ type: 'STOP_LIMIT', trigger: 9 }, 'TriggerEncoding', [0, 9], condition(0)))
    for (const value of [3, 4, 5, 255])
      it(`when the condition is ${value}, it reverts with TriggerEncoding`, () =>
        refused({ type: 'STOP_LIMIT', trigger: 9 }, 'TriggerEncoding', [3, 9], condition(value)))
    it('when a take-profit is not reduce-only, it reverts with TriggerEncoding', async () => {
      await refused({ type: 'TAKE_PROFIT_LIMIT', trigger: 9 }, 'TriggerEncoding', [2, 9])
      await refused({ side: 'SHORT', type: 'TAKE_PROFIT_LIMIT', trigger: 9 }, 'TriggerEncoding', [1, 9])
    })
  })

  describe('signature', () => {
    it('when any signed bit of the order is flipped, it reverts', async () => {
      const order = { type: 'STOP_LIMIT', trigger: PRICE, quantity: 5000, slot: 0 } as const
      const bytes = encodeSettleBatch(await buildPart(exchange, against(order)), exchange.spec)
      const fields = [
        AT.maker,
        AT.leverage,
        AT.flags + 4,
        AT.price + 3,
        AT.expiration + 2,
        AT.optional + 4,
        AT.optional + 6,
        AT.optional + 10,
        AT.r + 7,
        AT.s + 9,
      ]
      for (const field of fields) {
        await expectRejected(
          send(exchange, withBitFlipped(bytes, field * 8 + 5)),
          /SignerUnauthorized|SignatureInvalid|LimitViolated|OrderExpired|TriggerEncoding|Overfill|LeverageOutOfRange/,
          `byte ${field}`,
        )
      }
    })
    it('when only the fill is flipped, the signature stays valid and the part reverts with Unbalanced', async () => {
      const bytes = encodeSettleBatch(
        await buildPart(exchange, against({ quantity: 5000, slot: 0 })),
        exchange.spec,
      )
      await expectRefused(exchange, withBitFlipped(bytes, (AT.fill + 5) * 8 + 7), { error: 'Unbalanced' })
    })
    it('when s is in the upper half, it reverts with SignatureInvalid', async () => {
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
      await refused({}, 'SignatureInvalid', [], (bytes) => {
        const s = BigInt(`0x${Buffer.from(bytes.subarray(AT.s, AT.s + 32)).toString('hex')}`)
        const mirrored = Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex')
        const flipped = withBytes(bytes, AT.s, ...mirrored)
        return withBytes(flipped, AT.tail + 1, flipped[AT.tail + 1]! ^ 8)
      })
    })
    it('when r is zero, it reverts with SignatureInvalid', () =>
      refused({}, 'SignatureInvalid', [], (bytes) =>
        withBytes(bytes, AT.r, ...new Array<number>(32).fill(0)),
      ))
    it('when r is zero and the maker is the zero address, it reverts with SignatureInvalid', async () => {
      const bytes = encodeSettleBatch(await buildPart(exchange, against()), exchange.spec)
      const ofZeroAddress = withBytes(bytes, AT.maker, ...new Array<number>(20).fill(0))
      const unsigned = withBytes(ofZeroAddress, AT.r, ...new Array<number>(32).fill(0))
      await expectRefused(exchange, unsigned, { error: 'SignatureInvalid', args: [ZeroAddress, SALT] })
    })
    it('when an unauthorized account signed, it reverts with SignerUnauthorized', () =>
      refused({ signer: wallet('unauthorized') }, 'SignerUnauthorized', [wallet('unauthorized').address]))
    it('when it was signed for another market, it reverts with SignerUnauthorized', async () => {
      const part = await buildPart(exchange, against())
      const elsewhere = { ...exchange, spec: { ...exchange.spec, trader: addressOf(wallet('other market')) } }
      const foreign = await buildPart(elsewhere, against())
      const bytes = encodeSettleBatch({ ...part, fills: foreign.fills }, exchange.spec)
      await expectRefused(exchange, bytes, { error: 'SignerUnauthorized' })
    })
  })

  describe('session keys', () => {
    const key = wallet('session key')
    const manage = async () => exchange.keys.connect(await caller(exchange, exchange.users[0]!))
    const signed = { signer: key }
    const unauthorizedSigner: Refusal = { error: 'SignerUnauthorized' }

    it('when the key has the order permission, it settles', async () => {
      await (await manage()).registerSessionKey(key.address, 1)
      await settle(exchange, against(signed))
    })
    it('when the key has only the margin permission, it reverts with SignerUnauthorized', async () => {
      await (await manage()).registerSessionKey(key.address, 2)
      await expectPartRefused(exchange, against(signed), unauthorizedSigner)
    })
    it('when the key belongs to another owner, it reverts with SignerUnauthorized', async () => {
      await exchange.keys
        .connect(await caller(exchange, exchange.users[1]!))
        .registerSessionKey(key.address, 1)
      await expectPartRefused(exchange, against(signed), unauthorizedSigner)
    })
    it('when the key was revoked, it settles for asOf up to 5 s later and then reverts with SignerUnauthorized', async () => {
      const keys = await manage()
      await keys.registerSessionKey(key.address, 1)
      await keys.revokeSessionKey(key.address)
      const revokedAt = (await exchange.connection.networkHelpers.time.latest()) * 1000
      await exchange.connection.networkHelpers.time.increase(6)
      await expectPartRefused(
        exchange,
        { ...against(signed), asOf: (revokedAt + 5001) as never },
        unauthorizedSigner,
      )
      await settle(exchange, { ...against(signed), asOf: (revokedAt + 5000) as never })
    })
    it('when 30 days have passed since the first registration, it reverts with SignerUnauthorized despite a second one', async () => {
      const keys = await manage()
      await keys.registerSessionKey(key.address, 1)
      await exchange.connection.networkHelpers.time.increase(29 * 86_400)
      await keys.registerSessionKey(key.address, 1)
      await exchange.connection.networkHelpers.time.increase(86_400)
      await expectPartRefused(exchange, against(signed), unauthorizedSigner)
    })
  })

  describe('reduce-only', () => {
    it('when there is no position, it reverts with ReduceOnlyExceeded', () =>
      refused({ reduceOnly: true }, 'ReduceOnlyExceeded', [0, 1000]))
    it('when the position is on the same side, it reverts with ReduceOnlyExceeded', async () => {
      await settle(exchange, against({ salt: 1n }))
      await refused({ reduceOnly: true }, 'ReduceOnlyExceeded', [0, 1000])
    })
    it('when the fill exceeds the position, it reverts with ReduceOnlyExceeded', async () => {
      await settle(exchange, against({ salt: 1n }))
      await refused({ side: 'SHORT', reduceOnly: true, fill: 1001 }, 'ReduceOnlyExceeded', [1000, 1001])
    })
    it('when the fill closes the position, it settles', async () => {
      await settle(exchange, against({ salt: 1n }))
      await settle(exchange, against({ side: 'SHORT', reduceOnly: true }))
    })
    it('when earlier records of the part leave less position than the fill, it reverts with ReduceOnlyExceeded', async () => {
      await settle(exchange, against({ salt: 1n }))
      const [alice, bob] = exchange.users
      const fills: FillInput[] = [
        { by: alice!, side: 'SHORT', fill: 600, reduceOnly: true },
        { by: alice!, side: 'SHORT', fill: 600, reduceOnly: true, salt: SALT },
        { by: bob!, side: 'LONG', fill: 1200 },
      ]
      const error = { error: 'ReduceOnlyExceeded', args: [maker, SALT, 400, 600] }
      await expectPartRefused(exchange, { price: PRICE, fills }, error)
    })
  })

  it('when the same maker and salt occur twice in one part, it reverts with OrderDead', async () => {
    const [alice, bob] = exchange.users
    const fills = [...pair(alice!, bob!, 500, { quantity: 500 })].map((fill) => ({ ...fill, salt: SALT }))
    const error = { error: 'OrderDead', args: [maker, SALT] }
    await expectPartRefused(exchange, { price: PRICE, fills: [...fills, ...fills] }, error)
  })

  it('encodes header and records in the documented sizes', async () => {
    const sizeOf = async (input: Partial<FillInput>): Promise<number> =>
      encodeSettleBatch(await buildPart(exchange, against(input)), exchange.spec).length
    const plain = HEADER_BYTES + 2 * 110 + 2 * 65
    expect(await sizeOf({})).to.equal(plain)
    expect(await sizeOf({ quantity: 5000, slot: 0 })).to.equal(plain + 6)
    expect(await sizeOf({ type: 'STOP_LIMIT', trigger: PRICE })).to.equal(plain + 6)
    // Taker steps of both orders.
    expect(await sizeOf({ taker: 1 })).to.equal(plain + 12)
  })
})
