/** The Ignition module of the exchange. The entry modules in ignition/modules choose the collateral token. */
import type {
  ArgumentType,
  IgnitionModuleBuilder,
  NamedArtifactContractAtFuture,
  NamedArtifactContractDeploymentFuture,
} from '@nomicfoundation/ignition-core'
import { FUNCTIONS, type Granted, type Restricted, ROLES } from '../stack/access.ts'
import { LATCH_WEI } from '../stack/deploy.ts'
import { selectorsOf } from './selectors.ts'

type Deployed<Name extends string> =
  | NamedArtifactContractDeploymentFuture<Name>
  | NamedArtifactContractAtFuture<Name>
type Access = Deployed<'ExchangeAccess'>

/** Assigns the functions of a contract to their roles. */
export function assignRoles(
  m: IgnitionModuleBuilder,
  access: Access,
  name: Restricted,
  target: Deployed<Restricted>,
): void {
  for (const [role, functions] of Object.entries(FUNCTIONS[name])) {
    const selectors = selectorsOf(name, functions)
    m.call(access, 'setTargetFunctionRole', [target, selectors, ROLES[role as Granted]], {
      id: `${name}_${role}`,
    })
  }
}

/** Grants a role without delay to the deployer, who keeps it until `hand-over`. */
function takeRole(m: IgnitionModuleBuilder, access: Access, role: Granted): void {
  const deployer = m.getAccount(0)
  const offered = m.call(access, 'grantRole', [ROLES[role], deployer, 0], { id: `offer_${role}` })
  m.call(access, 'acceptRole', [ROLES[role]], { id: `accept_${role}`, after: [offered] })
}

/** The contracts that all markets share. */
export function deployExchange(m: IgnitionModuleBuilder, usdm: ArgumentType) {
  const access = m.contract('ExchangeAccess', [m.getAccount(0), m.getParameter('roleDelay')])
  const forwarder = m.contract('Forwarder')
  const accountManager = m.contract('AccountManager', [forwarder])
  const oracle = m.contract('SignedPriceOracle', [access, m.getParameter('oracleNotice')])
  const treasury = m.getParameter<string>('treasury')
  const bank = m.contract('MarginBank', [usdm, access, treasury, m.getParameter('listingDelay')], {
    value: LATCH_WEI,
  })
  const backstop = m.contract('Backstop', [access, bank, accountManager])
  const lens = m.contract('SettlementLens')
  const libraries = deployLibraries(m)
  const extension = m.contract('MarketExtension', [], { libraries })
  for (const role of ['listing', 'parameters', 'guardian', 'treasury'] as const) takeRole(m, access, role)
  assignRoles(m, access, 'MarginBank', bank)
  assignRoles(m, access, 'SignedPriceOracle', oracle)
  assignRoles(m, access, 'Backstop', backstop)
  return { access, forwarder, accountManager, oracle, bank, backstop, lens, extension, ...libraries }
}

const deployLibraries = (m: IgnitionModuleBuilder) => ({
  ChangeLib: m.library('ChangeLib'),
  FundingLib: m.library('FundingLib'),
  ValidationLib: m.library('ValidationLib'),
  WindDownLib: m.library('WindDownLib'),
})
