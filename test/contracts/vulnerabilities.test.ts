/**
 * Attacks known from other exchanges, one group per class, named as auditors name them. The README of this folder lists the
 * classes that unit tests cover.
 */
import { expect } from 'chai'
import { TypedDataEncoder, Wallet } from 'ethers'
import { network } from 'hardhat'
import { encodeSettleBatch } from '../../domain/settlement/settlement-codec.ts'
import type { MarketId } from '../../domain/units.ts'
import { deployMarket } from '../../stack/deploy.ts'
import type { Forwarder } from '../../typechain-types/Forwarder.ts'
import { Forwarder__factory } from '../../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../../typechain-types/factories/IsolatedTrader__factory.ts'
import {
  addressOf,
  buildPart,
  caller,
  chain,
  type Exchange,
  type FillInput,
  nextSecond,
  pair,
  perpetualExchange,
  START_BALANCE,
  send,
  settle,
} from '../support/exchange.ts'
import { expectPartRefused } from '../support/refusals.ts'
import { audit } from './support/audit.ts'
import { freeze } from './support/wind-down.ts'

const PRICE = 500_000

describe('vulnerability classes', () => {
  let exchange: Exchange
  let alice: Wallet
  let bob: Wallet
  beforeEach(async () => {
    exchange = await (await chain()).networkHelpers.loadFixture(perpetualExchange)
    ;[alice, bob] = exchange.users as [Wallet, Wallet]
  })

  const freeOf = async (user: Wallet): Promise<bigint> => (await exchange.bank.account(user.address)).free
  const latest = async (): Promise<number> => exchange.connection.networkHelpers.time.latest()

  describe('rounding of tiny fills: an order filled step by step', () => {
    it('costs the same as a single fill and leaves the same position, to the wei', async () => {
      const [, , carol, dave] = exchange.users as Wallet[]
      const order: Partial<FillInput> = { quantity: 7, leverage: 3, salt: 77n }
      for (let step = 0; step < 7; step++) {
        await settle(exchange, { price: PRICE + 1, fills: pair(alice, bob, 1, { ...order, slot: 0 }) })
      }
      await settle(exchange, { price: PRICE + 1, fills: pair(carol!, dave!, 7, order) })
      for (const [nibbled, whole] of [
        [alice, carol!],
        [bob, dave!],
      ] as const) {
        expect(await freeOf(nibbled)).to.equal(await freeOf(whole))
        const held = [...(await exchange.trader.position(nibbled.address))]
        expect(held).to.deep.equal([...(await exchange.trader.position(whole.address))])
      }
    })
  })

  describe('stray inventory: tokens transferred without a deposit', () => {
    it('are credited and paid out to no account', async () => {
      const { usdm, bank, shared } = exchange
      await usdm.mint(shared.marginBank, START_BALANCE)
      await settle(exchange, { price: PRICE, fills: pair(alice, bob, 1000) })
      expect((await bank.account(alice.address)).free).to.be.lessThan(START_BALANCE)
      const owed = START_BALANCE * BigInt(exchange.users.length)
      expect(await usdm.balanceOf(shared.marginBank)).to.equal(owed + START_BALANCE)
    })
  })

  describe('callbacks of makers, and accounts with code', () => {
    it('never occur: an account whose code burns all gas settles as any other', async () => {
      const { networkHelpers } = exchange.connection
      const plain = await (await settle(exchange, { price: PRICE, fills: pair(alice, bob, 1000) })).wait()
      // INVALID consumes all the gas of the call.
      for (const user of [alice, bob]) await networkHelpers.setCode(user.address, '0xfe')
      const coded = await (await settle(exchange, { price: PRICE, fills: pair(alice, bob, 1000) })).wait()
      expect(coded?.gasUsed).to.be.lessThan(plain?.gasUsed ?? 0n)
    })

    it('do not authorize: code that returns the ERC-1271 magic value validates no signature', async () => {
      const { networkHelpers } = exchange.connection
      // Returns the magic value of ERC-1271 to any call.
      const yes = '0x631626ba7e60e01b5f5260205ff3'
      await networkHelpers.setCode(alice.address, yes)
      const forged = { by: alice, side: 'LONG', fill: 1000, signer: Wallet.createRandom() } as never
      const fills = [forged, { by: bob, side: 'SHORT', fill: 1000 } as FillInput]
      await expectPartRefused(exchange, { price: PRICE, fills }, { error: 'SignerUnauthorized' })
    })
  })

  describe('a chain id cached at deployment: a chain that forks to another id', () => {
    it('changes every signing domain, so signatures for one chain are invalid on the other', async () => {
      const { provider } = exchange.connection.ethers
      const { spec, shared } = exchange
      const FORKED_ID = 777
      const forked = await network.create({ override: { chainId: FORKED_ID } })
      // The market delegates its views.
      await forked.networkHelpers.setCode(shared.extension, await provider.getCode(shared.extension))
      for (const [address, name, version] of [
        [spec.trader, 'IsolatedTrader', '2.0'],
        [shared.oracle, null, null],
        [shared.forwarder, 'Forwarder', '1'],
        [shared.usdm, null, null],
      ] as const) {
        await forked.networkHelpers.setCode(address, await provider.getCode(address))
        const [here, there] = [provider, forked.ethers.provider].map((runner) =>
          Forwarder__factory.connect(address, { provider: runner }),
        ) as [Forwarder, Forwarder]
        const [before, after] = [await here.eip712Domain(), await there.eip712Domain()]
        expect([before.chainId, after.chainId]).to.deep.equal([spec.chainId, BigInt(FORKED_ID)])
        expect(after.verifyingContract.toLowerCase()).to.equal(address)
        if (name !== null) expect([after.name, after.version]).to.deep.equal([name, version])
      }
      const market = IsolatedTrader__factory.connect(spec.trader, { provider: forked.ethers.provider })
      expect(await market.domainSeparator()).to.equal(
        TypedDataEncoder.hashDomain({
          ...{ name: 'IsolatedTrader', version: '2.0' },
          ...{ chainId: FORKED_ID, verifyingContract: spec.trader },
        }),
      )
    })
  })

  describe('starved gas', () => {
    it('when settlement runs out of gas, it reverts without any effect', async () => {
      const { trader, connection } = exchange
      const part = await buildPart(exchange, { price: PRICE, fills: pair(alice, bob, 1000) })
      const bytes = encodeSettleBatch(part, exchange.spec)
      const untouched = await connection.networkHelpers.takeSnapshot()
      const needed = (await (await send(exchange, bytes)).wait())?.gasUsed ?? 0n
      await untouched.restore()
      for (const share of [60n, 80n, 90n, 95n, 99n]) {
        const gasLimit = (needed * share) / 100n
        await connection.networkHelpers.time.setNextBlockTimestamp(await nextSecond(exchange))
        await expect(trader.settleBatch(bytes, { gasLimit })).to.be.revertedWithoutReason(connection.ethers)
        expect((await trader.clock()).actionId).to.equal(0n)
        expect(await freeOf(alice)).to.equal(START_BALANCE)
      }
    })

    it('when a deposit’s permit fails, the deposit reverts and the tokens stay with the owner', async () => {
      const { bank, usdm } = exchange
      const user = await caller(exchange, alice)
      await usdm.mint(user.address, 100n)
      const call = bank
        .connect(user)
        .depositWithPermit(100n, 2n ** 40n, 27, alice.address.padEnd(66, '0'), `0x${'11'.repeat(32)}`)
      await expect(call).to.be.revertedWithCustomError(usdm, 'ERC20InsufficientAllowance')
      expect(await usdm.balanceOf(user.address)).to.equal(100n)
    })
  })

  describe('the forwarder as sender', () => {
    /** A request signed by `from`, executed by another account. */
    async function forward(from: Wallet, to: string, data: string): Promise<unknown> {
      const { connection, admin, shared, spec } = exchange
      const forwarder = await connection.ethers.getContractAt('Forwarder', shared.forwarder, admin)
      const [, name, version] = await forwarder.eip712Domain()
      const names = [
        'from:address',
        'to:address',
        'value:uint256',
        'gas:uint256',
        'nonce:uint256',
        'deadline:uint48',
        'data:bytes',
      ]
      const ForwardRequest = names.map((pairOf) => {
        const [field = '', type = ''] = pairOf.split(':')
        return { name: field, type }
      })
      const nonce = await forwarder.nonces(from.address)
      const message = {
        from: from.address,
        to,
        value: 0,
        gas: 500_000,
        nonce,
        deadline: (await latest()) + 60,
        data,
      }
      const domain = { name, version, chainId: spec.chainId, verifyingContract: shared.forwarder }
      const signature = await from.signTypedData(domain, { ForwardRequest }, message)
      return forwarder.execute({ ...message, signature })
    }

    it('is rejected by contracts that do not trust it', async () => {
      const { bank, usdm, shared, connection } = exchange
      const forwarder = await connection.ethers.getContractAt('Forwarder', shared.forwarder)
      const withdraw = bank.interface.encodeFunctionData('requestWithdrawal', [1n])
      await expect(forward(alice, shared.marginBank, withdraw)).to.be.revertedWithCustomError(
        forwarder,
        'ERC2771UntrustfulTarget',
      )
      const transfer = usdm.interface.encodeFunctionData('transferFrom', [bob.address, alice.address, 1n])
      await expect(forward(alice, shared.usdm, transfer)).to.be.revertedWithCustomError(
        forwarder,
        'ERC2771UntrustfulTarget',
      )
    })

    it('does not act for an operator or a role', async () => {
      const { trader, spec, connection } = exchange
      const operator = Wallet.createRandom() as unknown as Wallet
      const asOperator = trader.interface.encodeFunctionData('heartbeat')
      await connection.networkHelpers.setBalance(operator.address, 10n ** 18n)
      await trader.connect(exchange.admin).proposeOperator(operator.address)
      await trader.connect(operator.connect(connection.ethers.provider)).acceptOperator()
      await expect(forward(operator, spec.trader, asOperator)).to.be.revertedWithCustomError(
        await connection.ethers.getContractAt('Forwarder', exchange.shared.forwarder),
        'FailedCall',
      )
      const asAdmin = trader.interface.encodeFunctionData('proposeOperator', [alice.address])
      await expect(forward(alice, spec.trader, asAdmin)).to.revert(connection.ethers)
    })

    it('cannot be imitated: an address appended to a direct call stays data', async () => {
      const { trader, spec } = exchange
      const thief = await caller(exchange, bob)
      const data = trader.interface.encodeFunctionData('cancelSaltsBelow', [100n])
      await thief.sendTransaction({ to: spec.trader, data: data + alice.address.slice(2) })
      expect((await trader.floors(alice.address)).requested).to.equal(0n)
      expect((await trader.floors(bob.address)).requested).to.equal(100n)
    })
  })

  describe('invalidation after the match: money moved to an ended market', () => {
    it('leaves the balance that backs a match in another market', async () => {
      const { admin, operator, oracleSigners, shared, bank } = exchange
      const listed = { ...exchange.spec, marketId: 77 as MarketId }
      const trader = await deployMarket(admin, shared, listed, {
        operators: [operator],
        oracleSigners: oracleSigners.map(addressOf),
        threshold: 2,
      })
      const other: Exchange = {
        ...exchange,
        spec: { ...listed, trader },
        trader: IsolatedTrader__factory.connect(trader, operator),
      }
      await settle(exchange, { price: PRICE, fills: pair(alice, bob, 1) })
      await freeze({ exchange })
      const matched = await buildPart(other, { price: PRICE, fills: pair(alice, bob, 1000) })
      const gift = exchange.trader.connect(await caller(exchange, alice)).coverDeficit(START_BALANCE)
      await expect(gift).to.be.revertedWithCustomError(bank, 'FreeBalanceInsufficient')
      await send(other, encodeSettleBatch(matched, other.spec))
      expect((await other.trader.position(alice.address)).size).to.equal(1000n)
    })
  })

  describe('value extracted by a stolen session key, or between two accounts of one owner', () => {
    const edge = (share: number): number => Math.trunc((PRICE * (100 + share)) / 100)
    const oraclePrice = (): bigint => BigInt(PRICE) * exchange.spec.tick

    it('is limited by the band on both sides', async () => {
      for (const share of [5.01, -5.01]) {
        const price = edge(share)
        const fills = pair(alice, bob, 10, { limit: price })
        const refusal = { error: 'PriceOffBand' }
        await expectPartRefused(exchange, { price, oraclePrice: oraclePrice(), fills }, refusal)
      }
    })

    it('does not come out of the pool: a fill away from the oracle price needs margin at that price', async () => {
      // Bought 5 % too dear at 20x, a position would start without equity.
      const price = edge(5)
      const fills = pair(alice, bob, 1000, { limit: price, leverage: 20 })
      await expectPartRefused(
        exchange,
        { price, oraclePrice: oraclePrice(), fills },
        { error: 'MarginInsufficient' },
      )
    })

    it('is at most the victim’s loss', async () => {
      const wealth = async (user: Wallet): Promise<bigint> => {
        const [equityX] = await exchange.trader.health(user.address, oraclePrice())
        return (await freeOf(user)) * 10n ** 18n + equityX
      }
      const before = (await wealth(alice)) + (await wealth(bob))
      const price = edge(5)
      await settle(exchange, {
        price,
        oraclePrice: oraclePrice(),
        fills: pair(alice, bob, 1000, { leverage: 1, limit: price }),
      })
      await settle(exchange, { price: PRICE, fills: pair(bob, alice, 1000, { leverage: 1 }) })
      expect((await wealth(alice)) + (await wealth(bob))).to.be.at.most(before)
      await audit(exchange)
    })
  })
})
