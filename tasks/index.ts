/**
 * Definitions of the `npx hardhat` tasks. Their code is imported when a task runs, because a build must not require the types that
 * it generates.
 */
import { overrideTask, task } from 'hardhat/config'
import { HardhatPluginError } from 'hardhat/plugins'

const DEPLOYMENT = {
  name: 'deploymentId',
  description: 'name of the deployment, as given to `ignition deploy`',
  defaultValue: 'local',
} as const
const PARAMETERS = {
  name: 'parameters',
  description: 'parameter file of the network, such as ignition/parameters/local.json',
  defaultValue: '',
} as const
const DESCRIPTION = {
  name: 'market',
  description: 'description of the market (JSON file)',
  defaultValue: '',
} as const
const ORDER = {
  name: 'order',
  description: 'order as in the body of POST /v0/orders, with `maker` (JSON text or a file)',
  defaultValue: '',
} as const

const markets = () => import('./markets.ts')
const deploying = () => import('./deploying.ts')
const roles = () => import('./roles.ts')
const showing = () => import('./showing.ts')
const exchange = () => import('./exchange.ts')
const orders = () => import('./orders.ts')
const settlement = () => import('./settlement.ts')

/** Prints an expected error as one line. Any other error is a fault and keeps its stack trace. */
const oneLineErrors =
  <Arguments extends unknown[]>(act: (...given: Arguments) => Promise<void>) =>
  async (...given: Arguments): Promise<void> => {
    try {
      await act(...given)
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'Error') throw error
      throw new HardhatPluginError('clearbatch', error.message, error)
    }
  }

export const TASKS = [
  overrideTask(['ignition', 'deploy'])
    .setInlineAction(async (given, hre, runSuper) => {
      await oneLineErrors(async () => (await exchange()).requireDeployable(given, hre))()
      return runSuper(given)
    })
    .build(),
  task('deploy-market', 'Deploys one market; during the set-up it also configures and announces it')
    .addOption(DESCRIPTION)
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(oneLineErrors(async (given, hre) => (await markets()).deployMarket(given, hre)))
    .build(),
  task('complete-market', 'Lists the calls that are missing until a market is live, and their callers')
    .addOption(DESCRIPTION)
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .addFlag({ name: 'send', description: 'first sends the calls that the key of this network may make' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await markets()).completeMarket(given, hre)))
    .build(),
  task(
    'recover-deployment',
    'After an interruption: updates the journal from the chain, so that `ignition deploy` can resume',
  )
    .addOption(DEPLOYMENT)
    .setInlineAction(oneLineErrors(async (given, hre) => (await deploying()).recoverDeployment(given, hre)))
    .build(),
  task('hand-over', "Hands the deployer's roles to their holders, step by step")
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(oneLineErrors(async (given, hre) => (await roles()).handOver(given, hre)))
    .build(),
  task('accept-role', 'Accepts a role that was offered')
    .addOption({
      name: 'role',
      description: 'admin, listing, parameters, guardian or treasury',
      defaultValue: '',
    })
    .addOption(DEPLOYMENT)
    .setInlineAction(oneLineErrors(async (given, hre) => (await roles()).acceptRole(given, hre)))
    .build(),
  task('check-deployment', 'Compares a deployment on chain with its parameters and market descriptions')
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .addOption({
      name: 'markets',
      description: 'descriptions of its markets, comma-separated',
      defaultValue: '',
    })
    .addFlag({ name: 'handedOver', description: 'also checks that the deployer has no role left' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await deploying()).check(given, hre)))
    .build(),
  task('show-market', 'Shows a market: grid, parameters, last action, oracle reference, risk, wind-down')
    .addOption({ name: 'trader', description: 'address of its contract', defaultValue: '' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await showing()).showMarket(given, hre)))
    .build(),
  task('show-account', 'Shows the bank balance of an account and its position in a market')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption({ name: 'account', description: 'address of the account', defaultValue: '' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await showing()).showAccount(given, hre)))
    .build(),
  task('hash-order', "Hashes an order: digest, typed data, and the market's own digest")
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .setInlineAction(oneLineErrors(async (given, hre) => (await orders()).hashOrder(given, hre)))
    .build(),
  task('validate-order', 'Checks on chain whether a market could settle an order, and shows its signer')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .addOption({ name: 'signature', description: '66 bytes, ending in 01', defaultValue: '' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await orders()).validateOrder(given, hre)))
    .build(),
  task('decode-settlement', 'Decodes the effects of a settlement from the receipt of its transaction')
    .addOption({ name: 'tx', description: 'hash of the transaction', defaultValue: '' })
    .setInlineAction(oneLineErrors(async (given, hre) => (await settlement()).decodeSettlement(given, hre)))
    .build(),
]
