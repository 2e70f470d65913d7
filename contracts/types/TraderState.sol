// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Parameters} from "./Market.sol";

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

/// @notice The oracle report this market used last, and the funding index. One slot.
struct Reference {
    uint96 oraclePrice;
    uint48 observedAt;
    /// Wei that one long step has paid since the beginning; shorts receive the same.
    int96 fundingIndex;
}

/// @notice The rate at which the index moves. One slot; all zero until funding is switched on.
struct FundingRate {
    /// Wei per step and hour, oracle price included.
    int96 rate;
    uint48 validFrom;
    uint48 validUntil;
    uint48 accruedAt;
}

/// @notice Salts below a floor are cancelled. One slot per account, read only where the position says so.
struct CancelFloor {
    /// Binding for every batch.
    uint56 settled;
    /// Binding for batches with an `asOf` later than `requestedAt` + G.
    uint56 requested;
    /// Milliseconds.
    uint48 requestedAt;
}

/// @notice Parameters that take over with the first action whose `asOf` reaches `activeFrom`.
struct ScheduledParameters {
    Parameters parameters;
    uint48 activeFrom;
}

/// @notice How a market ends: claims at a fixed price, with one haircut. All zero while it lives.
struct Wind {
    uint96 price;
    uint48 frozenAt;
    uint48 requestedAt;
    uint48 heartbeatAt;
}

/// @notice A packed word in a slot of its own: as a struct, so that its place is worked out once for read and write.
struct Word {
    uint256 bits;
}

/// @notice The whole storage of a market, so that cold code can live in linked libraries over one struct.
struct TraderState {
    Clock clock;
    Reference reference_;
    Parameters parameters;
    FundingRate funding;
    Wind wind;
    ScheduledParameters scheduled;
    /// account => packed position (PositionLib).
    mapping(address account => Word) positions;
    /// maker << 96 | salt >> 7 => 128 states of 2 bits (SaltLib).
    mapping(uint256 key => Word) saltWords;
    /// maker << 96 | index => salt, filled steps, batch (SaltLib).
    mapping(uint256 key => uint256) partialSlots;
    /// maker << 96 | salt => time of the cancel request and whether the order was partly filled.
    mapping(uint256 key => uint256) cancelRequests;
    mapping(address account => CancelFloor) cancelFloors;
    /// account << 96 | nonce >> 8 => used bits of margin nonces.
    mapping(uint256 key => uint256) marginNonces;
    mapping(address account => uint256) minimumMarginNonce;
}
