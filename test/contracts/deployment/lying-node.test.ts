/** The check against a node that lies about the creation of a contract, and against a market whose end differs from its description. */
import { expect } from 'chai'
import type { Block, Provider, TransactionReceipt, TransactionResponse } from 'ethers'
import { artifacts } from 'hardhat'
import { compiledFrom } from '../../../ignition/build.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { chain } from '../../support/exchange.ts'
import { type Connection, deployTampered, type Exchange, wrongIn } from '../support/tampering.ts'

const compiled = compiledFrom(artifacts)
const DAY = 86_400_000
const FUTURE = 'ignition/markets/local/rain-tomorrow.json'

describe('the check of a deployment', function () {
  this.timeout(600_000)
  let connection: Connection

  before(async () => {
    connection = await chain()
  })

  describe('given a node that lies', () => {
    let exchange: Exchange
    /** Address and creation of the bank. */
    let bank: string
    let hash: string
    /** The creation of another contract by the same sender. */
    let other: string

    before(async () => {
      exchange = await deployTampered(connection)
      bank = exchange.deployment.contracts.MarginBank ?? ''
      hash = exchange.hashes.get(bank.toLowerCase()) ?? ''
      other = exchange.hashes.get((exchange.deployment.contracts.Backstop ?? '').toLowerCase()) ?? ''
    })

    interface Lies {
      readonly receipt?: (true_: TransactionReceipt) => Promise<TransactionReceipt> | TransactionReceipt
      readonly transaction?: (
        true_: TransactionResponse,
      ) => Promise<TransactionResponse> | TransactionResponse
      readonly block?: (true_: Block) => Block
    }
    /** The object with other values of some of its properties. */
    const changed = <Of extends object>(of: Of, values: Partial<Record<keyof Of, unknown>>): Of =>
      new Proxy(of, {
        get: (target, name) => (name in values ? values[name as keyof Of] : Reflect.get(target, name)),
      })

    function lying({ receipt, transaction, block }: Lies): Provider {
      const { provider } = connection.ethers
      const replaced = {
        async getTransactionReceipt(asked: string) {
          const truth = await provider.getTransactionReceipt(asked)
          return asked === hash && receipt && truth ? receipt(truth) : truth
        },
        async getTransaction(asked: string) {
          const truth = await provider.getTransaction(asked)
          return asked === hash && transaction && truth ? transaction(truth) : truth
        },
        async getBlock(asked: number | 'latest') {
          const truth = await provider.getBlock(asked)
          return asked !== 'latest' && block && truth ? block(truth) : truth
        },
      }
      return new Proxy(provider, {
        get(target, name) {
          if (name in replaced) return replaced[name as keyof typeof replaced]
          const value = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      }) as unknown as Provider
    }

    async function creationWith(lies: Lies): Promise<string> {
      const wrong = await wrongIn(connection, compiled, exchange, lying(lies))
      const found = wrong.find(
        ({ what }) => what.toLowerCase() === `creation of marginbank ${bank}`.toLowerCase(),
      )
      return found?.found ?? 'as described'
    }
    const responseOf = async (of: string) =>
      (await connection.ethers.provider.getTransaction(of)) as TransactionResponse

    it('when it answers truthfully, the creation is as described', async () => {
      expect(await creationWith({})).to.equal('as described')
    })

    it('when the receipt names another address or a failed status, the creation is unknown', async () => {
      const named = {
        receipt: (true_: TransactionReceipt) => changed(true_, { contractAddress: other.slice(0, 42) }),
      }
      expect(await creationWith(named)).to.match(/^unknown: transaction .* created /)
      expect(await creationWith({ receipt: (true_) => changed(true_, { status: 0 }) })).to.match(/^unknown/)
    })

    it('when it returns the genuine input with the hash of another transaction, the creation is unknown', async () => {
      // As if the bank had been created by transaction `other`, whose input differs.
      const transaction = async () =>
        changed(await responseOf(other), { hash, data: (await responseOf(hash)).data })
      expect(await creationWith({ transaction })).to.match(/^unknown: the node returned transaction/)
      const edited = (true_: TransactionResponse) => changed(true_, { data: `${true_.data}00` })
      expect(await creationWith({ transaction: edited })).to.match(/^unknown: the node returned transaction/)
    })

    it('when a genuine creation of another contract is presented with a receipt for this one, the creation is unknown', async () => {
      const hashes = new Map(exchange.hashes).set(bank.toLowerCase(), other)
      const provider = lying({})
      const receipts = new Proxy(provider, {
        get(target, name) {
          if (name !== 'getTransactionReceipt') return Reflect.get(target, name)
          return async (asked: string) => {
            const truth = await connection.ethers.provider.getTransactionReceipt(asked)
            return asked === other && truth ? changed(truth, { contractAddress: bank }) : truth
          }
        },
      })
      const wrong = await wrongIn(connection, compiled, { ...exchange, hashes }, receipts)
      const line = wrong.find(({ what }) => what.toLowerCase().startsWith('creation of marginbank'))
      expect(line?.found).to.match(/^unknown: transaction .* creates 0x/)
    })

    it('when the receipt is of a block of another fork, the creation is unknown', async () => {
      const fork = (true_: Block) => changed(true_, { hash: `0x${'fe'.repeat(32)}` })
      expect(await creationWith({ block: fork })).to.match(/^unknown: the receipt of transaction/)
    })
  })

  describe('given a future', () => {
    let exchange: Exchange
    const wrong = async () =>
      (await wrongIn(connection, compiled, exchange)).map(({ what, found, expected }) => ({
        what,
        found,
        expected,
      }))
    const marketOf = () =>
      IsolatedTrader__factory.connect(
        exchange.deployment.markets.get(exchange.file.spec.marketId) ?? '',
        connection.ethers.provider,
      )

    beforeEach(async () => {
      exchange = await deployTampered(connection, undefined, FUTURE)
    })

    it('when nothing was changed, nothing is wrong', async () => {
      expect(await wrong()).to.deep.equal([])
    })

    it('when its expiry and its dispute window were extended, the check names both', async () => {
      const [signer] = await connection.ethers.getSigners()
      const market = marketOf().connect(signer ?? null)
      const { marketId, expiresAt, disputeWindow } = exchange.file.spec
      await (await market.extendExpiry(expiresAt + 20 * DAY)).wait()
      await (await market.extendDisputeWindow(13 * DAY)).wait()
      expect(await wrong()).to.deep.equal([
        {
          what: `market ${marketId}: expiry in force, ms`,
          expected: `${expiresAt}`,
          found: `${expiresAt + 20 * DAY}`,
        },
        {
          what: `market ${marketId}: dispute window in force, ms`,
          expected: `${disputeWindow}`,
          found: `${13 * DAY}`,
        },
      ])
    })
  })
})
