import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import toolbox from '@nomicfoundation/hardhat-toolbox-mocha-ethers'
import { configVariable, defineConfig } from 'hardhat/config'
import { definePlugin } from 'hardhat/plugins'
import { coverageBuild } from './tasks/coverage-build.ts'
import { deepProfile, type FuzzProfile, SHORT, seedText } from './tasks/fuzz-profiles.ts'
import { TASKS } from './tasks/index.ts'
import { promptsWithoutTerminal } from './tasks/terminal.ts'

/** Sorts artifact paths, so that the generated types do not depend on the order of the file system. */
const sortedTypes = definePlugin({
  id: 'sorted-types',
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        processArtifactsAfterSuccessfulBuild: async (_context, artifactPaths) => {
          ;(artifactPaths as string[]).sort()
        },
      }),
    }),
  },
})

const COMPILER = {
  version: '0.8.36',
  // An npm package, so that a build downloads nothing.
  path: fileURLToPath(import.meta.resolve('solc/soljson.js')),
}

/**
 * One compilation for tests and deployment, so that both have the same code. The optimizer settings are explicit and
 * first, because the build cache compares the input as text.
 */
const BUILD = {
  compilers: [
    {
      ...COMPILER,
      // With more runs IsolatedTrader exceeds the code size limit, and settlement is hardly cheaper.
      settings: { optimizer: { enabled: true, runs: 400 }, viaIR: true, evmVersion: 'prague' },
    },
  ],
  // Solidity tests deploy the contracts of the build; the tests themselves compile fast without the IR pipeline.
  overrides: Object.fromEntries(
    globSync('test/contracts/**/*.sol').map((path) => [
      path,
      { ...COMPILER, settings: { optimizer: { enabled: true, runs: 1_000 }, evmVersion: 'prague' } },
    ]),
  ),
  isolated: false,
  toolVersionsInBuildInfo: false,
}

/** Handlers catch expected reverts; any other revert fails the run. */
const INVARIANT = { failOnRevert: true, shrinkRunLimit: 200 }

const fuzzing = (profile: FuzzProfile) => ({
  fuzz: { runs: profile.fuzzRuns, seed: seedText(profile.seed) },
  invariant: { ...INVARIANT, runs: profile.runs, depth: profile.depth },
})

/**
 * Both chains have a fixed base fee of 0.001 gwei and need no tip. Only their nodes can estimate gas (10,000 per byte
 * of code), so no gas limit is set.
 */
const FEES = { maxFeePerGas: 1_000_000n, maxPriorityFeePerGas: 0n, disableFeeBumping: true } as const

const LOCAL = {
  type: 'edr-simulated',
  chainId: 6343,
  hardfork: 'prague',
  blockGasLimit: 1_000_000_000,
} as const

/** Blockscout needs no API key, Etherscan does. Sourcify is off, because it is not known to support these chains. */
const VERIFY = {
  blockscout: { enabled: true },
  etherscan:
    process.env.ETHERSCAN_API_KEY === undefined
      ? { enabled: false as const }
      : { enabled: true as const, apiKey: configVariable('ETHERSCAN_API_KEY') },
  sourcify: { enabled: false },
}

export default defineConfig({
  plugins: [sortedTypes, coverageBuild, promptsWithoutTerminal, toolbox],
  tasks: TASKS,
  // Deployment and verification use the profile "production", all other tasks "default".
  solidity: { profiles: { default: BUILD, production: BUILD } },
  networks: {
    default: LOCAL,
    // The chain of `npx hardhat node`, with the base fee of the MegaETH chains.
    node: { ...LOCAL, initialBaseFeePerGas: 1_000_000 },
    // A local node with unlocked accounts: anvil, or `npx hardhat node`.
    local: { type: 'http', url: 'http://127.0.0.1:8545', accounts: 'remote' },
    // Secrets come from the keystore (`npx hardhat keystore set …`) or from the environment.
    megaethTestnet: {
      type: 'http',
      chainId: 6343,
      url: configVariable('MEGAETH_TESTNET_RPC_URL'),
      accounts: [configVariable('MEGAETH_TESTNET_KEY')],
      timeout: 60_000,
      ignition: FEES,
    },
    megaeth: {
      type: 'http',
      chainId: 4326,
      url: configVariable('MEGAETH_RPC_URL'),
      accounts: [configVariable('MEGAETH_KEY')],
      timeout: 60_000,
      ignition: FEES,
    },
  },
  chainDescriptors: {
    6343: {
      name: 'MegaETH testnet',
      blockExplorers: {
        blockscout: {
          url: 'https://megaeth-testnet-v2.blockscout.com',
          apiUrl: 'https://megaeth-testnet-v2.blockscout.com/api',
        },
        etherscan: { url: 'https://testnet-mega.etherscan.io' },
      },
    },
    4326: {
      name: 'MegaETH',
      blockExplorers: {
        blockscout: { url: 'https://megaeth.blockscout.com', apiUrl: 'https://megaeth.blockscout.com/api' },
        etherscan: { url: 'https://mega.etherscan.io' },
      },
    },
  },
  // One sequencer returns receipts within milliseconds.
  ignition: { requiredConfirmations: 1, blockPollingInterval: 200 },
  verify: VERIFY,
  paths: {
    tests: { mocha: './test/contracts', solidity: './test/contracts' },
  },
  typechain: { outDir: fileURLToPath(new URL('typechain-types', import.meta.url)), tsNocheck: true },
  test: {
    mocha: { timeout: 300_000 },
    solidity: {
      profiles: {
        default: fuzzing(SHORT),
        deep: fuzzing(deepProfile(process.env)),
      },
    },
  },
})
