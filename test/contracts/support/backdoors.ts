/** Backdoors that an exchange can have after its hand-over, each planted by the role that could plant it. */
import { type HDNodeWallet, type Interface, JsonRpcProvider } from 'ethers'
import { contractOf, type Deployment, traderOf } from '../../../ignition/deployment.ts'
import { ROLES } from '../../../stack/access.ts'
import { feedIdOf } from '../../../stack/deploy.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { ExchangeAccess__factory } from '../../../typechain-types/factories/ExchangeAccess__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { SignedPriceOracle__factory } from '../../../typechain-types/factories/SignedPriceOracle__factory.ts'

const DAY = 86_400
const PUBLIC_ROLE = 2n ** 64n - 1n

/** The accounts of the deployment walk. */
export interface Planters {
  readonly url: string
  readonly deployment: Deployment
  /** Seconds. */
  readonly roleDelay: number
  readonly listingDelay: number
  /** Holds the roles admin, listing and parameters. */
  readonly governor: HDNodeWallet
  readonly treasury: HDNodeWallet
  /** An account without a role, for which the backdoors are. */
  readonly thief: HDNodeWallet
}

/** The exchange's contracts, and calls by a role with its delay. */
export class Planting {
  readonly provider: JsonRpcProvider
  readonly #planters: Planters

  constructor(planters: Planters) {
    this.#planters = planters
    this.provider = new JsonRpcProvider(planters.url, undefined, { cacheTimeout: -1 })
  }

  get thief(): string {
    return this.#planters.thief.address
  }

  at(name: string): string {
    return contractOf(this.#planters.deployment, name)
  }

  get market(): string {
    return traderOf(this.#planters.deployment, 1)
  }

  get access() {
    return ExchangeAccess__factory.connect(this.at('ExchangeAccess'), this.provider)
  }

  /** A call by the holder of the roles admin, listing and parameters. */
  govern(target: string, abi: Interface, name: string, args: unknown[]): Promise<void> {
    return this.#scheduled(this.#planters.governor, target, abi.encodeFunctionData(name, args))
  }

  administer(name: string, args: unknown[]): Promise<void> {
    return this.govern(this.at('ExchangeAccess'), ACCESS, name, args)
  }

  spend(name: string, args: unknown[]): Promise<void> {
    return this.#scheduled(
      this.#planters.treasury,
      this.at('Backstop'),
      BACKSTOP.encodeFunctionData(name, args),
    )
  }

  async schedule(target: string, data: string): Promise<void> {
    const { governor } = this.#planters
    await (await this.access.connect(governor.connect(this.provider)).schedule(target, data, 0)).wait()
  }

  async accept(role: bigint): Promise<void> {
    const thief = this.#planters.thief.connect(this.provider)
    await (await this.access.connect(thief).acceptRole(role)).wait()
  }

  async pass(seconds: number): Promise<void> {
    await this.provider.send('evm_increaseTime', [seconds])
    await this.provider.send('evm_mine', [])
  }

  passListingDelay(): Promise<void> {
    return this.pass(this.#planters.listingDelay)
  }

  async now(): Promise<number> {
    return (await this.provider.getBlock('latest'))?.timestamp ?? 0
  }

  async #scheduled(by: HDNodeWallet, target: string, data: string): Promise<void> {
    const access = this.access.connect(by.connect(this.provider))
    await (await access.schedule(target, data, 0)).wait()
    await this.pass(this.#planters.roleDelay + 1)
    await (await access.execute(target, data)).wait()
  }
}

const ACCESS = ExchangeAccess__factory.createInterface()
const BANK = MarginBank__factory.createInterface()
const ORACLE = SignedPriceOracle__factory.createInterface()
const TRADER = IsolatedTrader__factory.createInterface()
const BACKSTOP: Interface = Backstop__factory.createInterface()

export interface Backdoor {
  readonly name: string
  plant(by: Planting): Promise<void>
  /** The line that the check prints. */
  line(by: Planting): string
  /** The event that the line cites, and its contract; null if the line compares a value. */
  readonly event: readonly [event: string, contract: string] | null
}

/** Role outside the five. */
const OTHER = 9n
/** Code that answers every call as a market whose mode is open and which has one operator: returns the words 0 and 1. */
const ANSWERS_READY = '0x5f5f52600160205260405ff3'
const STRANGE_SELECTOR = '0x12345678'

export const BACKDOORS: readonly Backdoor[] = [
  {
    name: 'an open offer of a role',
    plant: (by) => by.administer('grantRole', [ROLES.listing, by.thief, 0]),
    line: (by) => `offer of role listing to ${by.thief}`,
    event: ['RoleOffered', 'ExchangeAccess'],
  },
  {
    name: 'a second member of a role',
    plant: async (by) => {
      await by.administer('grantRole', [ROLES.parameters, by.thief, 0])
      await by.accept(ROLES.parameters)
    },
    line: () => 'member of role parameters',
    event: ['RoleGranted', 'ExchangeAccess'],
  },
  {
    name: 'a member whose grant delay has not passed',
    plant: async (by) => {
      await by.administer('setGrantDelay', [ROLES.guardian, 20 * DAY])
      await by.pass(6 * DAY)
      await by.administer('grantRole', [ROLES.guardian, by.thief, 0])
      await by.accept(ROLES.guardian)
    },
    line: () => 'member of role guardian',
    event: ['RoleGranted', 'ExchangeAccess'],
  },
  {
    name: 'a member of a role outside the five',
    plant: async (by) => {
      await by.administer('grantRole', [OTHER, by.thief, 0])
      await by.accept(OTHER)
    },
    line: () => 'member of role 9',
    event: ['RoleGranted', 'ExchangeAccess'],
  },
  {
    name: 'a label of a role outside the five',
    plant: (by) => by.administer('labelRole', [OTHER, 'OPS']),
    line: () => 'label of role 9',
    event: ['RoleLabel', 'ExchangeAccess'],
  },
  {
    name: 'another admin of a role',
    plant: (by) => by.administer('setRoleAdmin', [ROLES.listing, OTHER]),
    line: () => 'admin of role listing',
    event: ['RoleAdminChanged', 'ExchangeAccess'],
  },
  {
    name: 'another guardian of a role',
    plant: (by) => by.administer('setRoleGuardian', [ROLES.treasury, PUBLIC_ROLE]),
    line: () => 'guardian of role treasury',
    event: ['RoleGuardianChanged', 'ExchangeAccess'],
  },
  {
    name: 'a grant delay',
    plant: (by) => by.administer('setGrantDelay', [ROLES.admin, 30 * DAY]),
    line: () => 'grant delay of role admin',
    event: ['RoleGrantDelayChanged', 'ExchangeAccess'],
  },
  {
    name: 'a delay of a target',
    plant: (by) => by.administer('setTargetAdminDelay', [by.at('MarginBank'), 30 * DAY]),
    line: (by) => `admin delay of target ${by.at('MarginBank')}`,
    event: ['TargetAdminDelayUpdated', 'ExchangeAccess'],
  },
  {
    name: 'a closed target outside the role table',
    plant: (by) => by.administer('setTargetClosed', [by.at('AccountManager'), true]),
    line: (by) => `target ${by.at('AccountManager')}`,
    event: ['TargetClosed', 'ExchangeAccess'],
  },
  {
    name: 'a function of another contract assigned to a role',
    plant: (by) => by.administer('setTargetFunctionRole', [by.thief, [STRANGE_SELECTOR], ROLES.listing]),
    line: (by) => `role of function ${STRANGE_SELECTOR} of ${by.thief}`,
    event: ['TargetFunctionRoleUpdated', 'ExchangeAccess'],
  },
  {
    name: 'a function of the bank assigned to all accounts',
    plant: (by) =>
      by.administer('setTargetFunctionRole', [
        by.at('MarginBank'),
        [BANK.getFunction('setTreasury').selector],
        PUBLIC_ROLE,
      ]),
    line: (by) => `role of function setTreasury of ${by.at('MarginBank')}`,
    event: ['TargetFunctionRoleUpdated', 'ExchangeAccess'],
  },
  {
    name: 'a scheduled operation',
    plant: (by) =>
      by.schedule(
        by.at('ExchangeAccess'),
        ACCESS.encodeFunctionData('grantRole', [ROLES.admin, by.thief, 0]),
      ),
    line: (by) => `: grantRole(0, ${by.thief}, 0) of ${by.at('ExchangeAccess')}`,
    event: ['OperationScheduled', 'ExchangeAccess'],
  },
  {
    name: 'an announced market',
    plant: (by) => by.govern(by.at('MarginBank'), BANK, 'announceMarket', [by.at('SettlementLens')]),
    line: (by) => `announced market ${by.at('SettlementLens')}`,
    event: ['MarketAnnounced', 'MarginBank'],
  },
  {
    name: 'a listed market that was not deployed with the exchange',
    plant: async (by) => {
      const market = `0xee${by.thief.slice(4).toLowerCase()}`
      await by.provider.send('anvil_setCode', [market, ANSWERS_READY])
      await by.govern(by.at('MarginBank'), BANK, 'announceMarket', [market])
      await by.passListingDelay()
      await by.govern(by.at('MarginBank'), BANK, 'listMarket', [market])
    },
    line: () => 'listed market 0x',
    event: ['MarketListed', 'MarginBank'],
  },
  {
    name: 'a market of the backstop that was not deployed with the exchange',
    plant: (by) => by.spend('setBacked', [by.thief, true]),
    line: (by) => `market ${by.thief} of the backstop`,
    event: ['MarketBacked', 'Backstop'],
  },
  {
    name: 'a session key of the backstop',
    plant: (by) => by.spend('registerSessionKey', [by.thief, 3]),
    line: (by) => `session key ${by.thief} of the backstop`,
    event: ['SessionKeyRegistered', 'AccountManager'],
  },
  {
    name: 'a proposed operator',
    plant: (by) => by.govern(by.market, TRADER, 'proposeOperator', [by.thief]),
    line: (by) => `operator ${by.thief} of market ${by.market}`,
    event: ['OperatorChanged', 'IsolatedTrader'],
  },
  {
    name: 'scheduled price signers',
    plant: (by) => by.govern(by.at('SignedPriceOracle'), ORACLE, 'setFeed', [feedIdOf(1), [by.thief], 1]),
    line: () => `market 1: scheduled signers of feed ${feedIdOf(1)}`,
    event: null,
  },
  {
    name: 'a scheduled mode',
    plant: async (by) =>
      by.govern(by.market, TRADER, 'scheduleMode', [3, ((await by.now()) + 9 * DAY) * 1000]),
    line: () => 'market 1: time of a scheduled mode',
    event: null,
  },
]
