// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice Header of one part of a batch: 64 bytes in calldata, and the same 64 bytes in the log.
struct PartHeader {
    uint256 actionId;
    uint256 batchId;
    /// Milliseconds; the clock of the batch.
    uint256 asOf;
    /// Counted from 1 to `parts`.
    uint256 part;
    uint256 parts;
    /// Number of order records.
    uint256 orders;
    uint256 proofLength;
    /// Clearing price in ticks.
    uint256 price;
    /// Rates of this batch in millionths.
    uint256 makerFee;
    uint256 takerFee;
    /// Oracle report: price x 1e18 and its time in milliseconds.
    uint256 oraclePrice;
    uint256 observedAt;
}

/// @notice A record as a struct, for auditors and tools. Settlement reads the packed words (types/OrderRecord.sol).
struct OrderFill {
    address maker;
    /// As signed, right-aligned: salt above 4 flag bits.
    uint256 flags;
    uint256 salt;
    bool buy;
    bool reduceOnly;
    uint256 quantity;
    uint256 price;
    uint256 trigger;
    uint256 triggerCondition;
    uint256 leverage;
    uint256 expiration;
    uint256 fill;
    /// Steps of `fill` that pay the taker rate.
    uint256 taker;
    /// Index of the maker's partial slot, or `NO_SLOT`.
    uint256 slot;
    /// A forced record (liquidation) without a signature.
    bool forced;
    bytes32 r;
    bytes32 s;
    uint256 v;
}

/// @notice Terms that all orders of a part share, computed once. Amounts per step are wei; `…X` are wei x 1e18.
struct PartTerms {
    bytes32 domainSeparator;
    uint256 asOf;
    uint256 batchId;
    /// Clearing price in ticks.
    uint256 price;
    uint256 tick;
    uint256 step;
    /// Value of one tick of price on one step.
    uint256 tickStepValue;
    /// Clearing price of one step.
    uint256 stepNotional;
    /// Oracle price of one step, exact.
    uint256 oracleStepX;
    uint256 makerFeePerStep;
    uint256 takerFeePerStep;
    uint256 maxLeverage;
    /// Requirements in millionths: minimum ratio to open, and ratio below which an account may be liquidated.
    uint256 imr;
    uint256 liquidationRatio;
    int256 fundingIndex;
    bool binary;
    /// Mode cancel-only: every matched step must close an account in liquidation.
    bool forcedOnly;
}
