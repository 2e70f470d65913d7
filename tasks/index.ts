/**
 * `npx hardhat` tasks. What they do is loaded when they run: a build must not need the types that it generates.
 */
import { task } from 'hardhat/config'
import { HardhatPluginError } from 'hardhat/plugins'

const DEPLOYMENT = {
  name: 'deploymentId',
  description: 'name of the deployment, as given to `ignition deploy`',
  defaultValue: 'local',
} as const
const PARAMETERS = {
  name: 'parameters',
  description: 'parameter file of the network',
  defaultValue: 'ignition/parameters/local.json',
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
const showing = () => import('./showing.ts')
const orders = () => import('./orders.ts')
const settlement = () => import('./settlement.ts')

/** What a task refuses is told in a line; anything else is a fault, and keeps its trace. */
const telling =
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
  task('deploy-market', 'Deploys one market of an exchange; during the set-up it wires and announces it too')
    .addOption(DESCRIPTION)
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(telling(async (given, hre) => (await markets()).deployMarket(given, hre)))
    .build(),
  task('complete-market', 'Says who must still call what until a market is live')
    .addOption(DESCRIPTION)
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .addFlag({ name: 'send', description: 'does first what the key of this network may do' })
    .setInlineAction(telling(async (given, hre) => (await markets()).completeMarket(given, hre)))
    .build(),
  task('recover-deployment', 'After an interruption: notes what was sent and not noted, so that it can go on')
    .addOption(DEPLOYMENT)
    .setInlineAction(telling(async (given, hre) => (await deploying()).recoverDeployment(given, hre)))
    .build(),
  task('hand-over', "Hands the deployer's roles to their holders, step by step")
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .setInlineAction(telling(async (given, hre) => (await deploying()).handOver(given, hre)))
    .build(),
  task('accept-role', 'Takes up a role that was offered')
    .addOption({
      name: 'role',
      description: 'admin, listing, parameters, guardian or treasury',
      defaultValue: '',
    })
    .addOption(DEPLOYMENT)
    .setInlineAction(telling(async (given, hre) => (await deploying()).acceptRole(given, hre)))
    .build(),
  task('check-deployment', 'Reads a deployment back and compares it with what was meant')
    .addOption(DEPLOYMENT)
    .addOption(PARAMETERS)
    .addOption({ name: 'markets', description: 'descriptions of its markets, by commas', defaultValue: '' })
    .addFlag({ name: 'handedOver', description: 'the deployer has left' })
    .setInlineAction(telling(async (given, hre) => (await deploying()).check(given, hre)))
    .build(),
  task('show-market', 'Shows a market: grid, parameters, queue of actions, references, risk, end')
    .addOption({ name: 'trader', description: 'address of its contract', defaultValue: '' })
    .setInlineAction(telling(async (given, hre) => (await showing()).showMarket(given, hre)))
    .build(),
  task('show-account', 'Shows what an account has at the bank, and its position in a market')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption({ name: 'account', description: 'address of the account', defaultValue: '' })
    .setInlineAction(telling(async (given, hre) => (await showing()).showAccount(given, hre)))
    .build(),
  task('hash-order', 'Hashes an order: digest, typed data, and what the market itself answers')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .setInlineAction(telling(async (given, hre) => (await orders()).hashOrder(given, hre)))
    .build(),
  task('validate-order', 'Asks a market whether it could settle an order, and who signed it')
    .addOption({ name: 'trader', description: "address of the market's contract", defaultValue: '' })
    .addOption(ORDER)
    .addOption({ name: 'signature', description: '66 bytes, ending in 01', defaultValue: '' })
    .setInlineAction(telling(async (given, hre) => (await orders()).validateOrder(given, hre)))
    .build(),
  task('decode-settlement', 'Decodes what a settlement did from the receipt of its transaction')
    .addOption({ name: 'tx', description: 'hash of the transaction', defaultValue: '' })
    .setInlineAction(telling(async (given, hre) => (await settlement()).decodeSettlement(given, hre)))
    .build(),
]
