// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode, Parameters} from "./Market.sol";
import {RiskTerms} from "./Risk.sol";

/// @notice Where the market's queue of actions stands. One slot, rewritten by every action.
struct Clock {
    uint48 actionId;
    uint48 batchId;
    /// Milliseconds, never decreasing.
    uint48 asOf;
    /// Parts of the batch that are settled, and how many it has.
    uint8 part;
    uint8 parts;
    /// Clearing price of the batch in ticks, and its rates in millionths.
    uint40 price;
    uint24 makerFee;
    uint24 takerFee;
}

/// @notice The oracle report this market used last, the funding index, and what else has to be read. One slot.
struct Reference {
    uint96 oraclePrice;
    uint48 observedAt;
    /// Wei that one long step has paid since the beginning; shorts receive the same.
    int96 fundingIndex;
    /// A funding rate is or will be running: its slot has to be read.
    bool funded;
    /// A change of parameters or mode is waiting in slots that actions otherwise leave cold.
    bool changePending;
}

/// @notice The rate at which the index moves, from one moment to another in milliseconds. It accrues from the `asOf` of one
/// action to that of the next, so it needs no time of its own. One slot.
struct FundingRate {
    /// Wei per step and hour, oracle price included.
    int96 rate;
    uint48 validFrom;
    uint48 validUntil;
}

/// @notice What an account has voided at a stroke. One slot per account, read only where the position says so.
struct Floors {
    /// Salts below it are cancelled, for every batch.
    uint56 settled;
    /// As above, for batches with an `asOf` later than `requestedAt` + CANCEL_GRACE.
    uint56 requested;
    /// Milliseconds.
    uint48 requestedAt;
    /// Margin nonces below it are void.
    uint96 marginNonce;
}

/// @notice What takes over with the first action whose `asOf` (milliseconds) reaches its time; a time of 0: nothing waits.
/// Two slots.
struct PendingChange {
    /// Their mode says nothing: parameters leave the mode as it is.
    Parameters parameters;
    uint48 parametersFrom;
    MarketMode mode;
    uint48 modeFrom;
    /// The guardian's word, which can only make the mode stricter.
    MarketMode restriction;
    uint48 restrictionFrom;
}

/// @notice How a market ends: signs of life while it lives, then a fixed price and one haircut. Times in milliseconds. Three
/// slots, the last two untouched while it lives.
struct WindDown {
    uint96 price;
    /// 0 while the market lives.
    uint48 endedAt;
    uint48 requestedAt;
    uint48 heartbeatAt;
    /// What the pool held at the end, and the reported deficits: together, what all others are due.
    uint112 poolAtEnd;
    uint128 deficit;
    bool haircutFixed;
    /// What the pool held when the haircut was fixed, at most what was due.
    uint112 haircutPool;
}

/// @notice A report that anyone may bring up to date, for a freeze. One slot; no action reads it.
struct Poked {
    uint96 price;
    uint48 observedAt;
}

/// @notice A packed word in a slot of its own: as a struct, so that its place is worked out once for read and write.
struct Word {
    uint256 bits;
}

/// @notice The whole storage of a market, so that the extension and linked libraries can work on one struct.
struct TraderState {
    Clock clock;
    Reference reference_;
    Parameters parameters;
    FundingRate funding;
    PendingChange pending;
    RiskTerms riskTerms;
    WindDown windDown;
    Poked poked;
    /// account => packed position (PositionLib).
    mapping(address account => Word) positions;
    /// maker << 96 | salt >> 6 => 64 states of 3 bits and the time of a cancel request (SaltLib).
    mapping(uint256 key => Word) saltWords;
    /// maker << 96 | index => salt, filled steps, batch (SaltLib).
    mapping(uint256 key => uint256) partialSlots;
    /// maker << 96 | salt => time of a cancel request that found the time of its word taken.
    mapping(uint256 key => uint256) cancelRequests;
    mapping(address account => Floors) floors;
    /// account << 96 | nonce >> 8 => used bits of margin nonces.
    mapping(uint256 key => Word) marginNonces;
    /// What the pool was short of when claims were paid.
    mapping(address account => uint256) unpaidClaims;
}
