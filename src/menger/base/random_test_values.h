#pragma once

// Written by tools/record_random.py with NumPy 2.4.6; not for editing.

#include <cstdint>

namespace menger::recorded {

inline constexpr uint32_t kSequence0[] = {0xb0f478beu, 0xdb2cd7e7u, 0x2c71ba49u, 0xabf4641au,
                                          0x9d7b8d41u, 0x20c6ed6du, 0x223c39d4u, 0x2c4099deu};
inline constexpr uint64_t kSequence7In64[] = {0xead0f7017c326e58u, 0x879c4f0f97e037au,
                                              0x623a8c4b6745675fu, 0xb3443fad60386cacu,
                                              0x533d3f6cb6ecdbe6u};
inline constexpr uint32_t kSequenceList[] = {0x6fbc8611u, 0x4df8aeb2u, 0x181241e5u,
                                             0x8470b9c4u, 0x86583755u, 0xea93ffc9u};
// SeedSequence(7).spawn(3)[2], and its spawn(2)[1].
inline constexpr uint32_t kSequenceChild[] = {0xe462588du, 0xf3ae1b89u, 0x60069a34u, 0x2baf8157u};
inline constexpr uint32_t kSequenceGrandchild[] = {0xa2d3017eu, 0x4c6c63f6u, 0xdcce2820u,
                                                   0x6dae0022u};

inline constexpr int64_t kRanges[][2] = {{0, 1},
                                         {0, 2},
                                         {-3, 4},
                                         {0, 1000},
                                         {0, 3221225472},
                                         {0, 4294967296},
                                         {5, 4294967302},
                                         {-4611686018427387904, 4611686018427387905},
                                         {INT64_MIN, 9223372036854775807}};

// The stream of seed 0: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed0Words64[] = {0xa30febcfd9c2825fu, 0x4510bdf882d9d721u,
                                             0xa7d3da94ecde8b8u, 0x43b27b61342f01du};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed0Mixed[] = {0xd9c2825fu, 0xa30febcfu, 0x82d9d721u,
                                           0xa7d3da94ecde8b8u, 0x4510bdf8u};
inline constexpr double kSeed0Doubles[] = {0x1.461fd79fb3850p-1, 0x1.1442f7e20b674p-2,
                                           0x1.4fa7b529d9bd0p-5, 0x1.0ec9ed84d0bc0p-6};
inline constexpr double kSeed0Uniform[] = {0x1.c0cbca647ced0p-7, -0x1.792e736320f47p-6,
                                           -0x1.7808d4489d6d2p-5, -0x1.8c0f80ec8f29dp-5};
inline constexpr double kSeed0Normal[] = {
    0x1.880bf6c4edc22p+0, 0x1.778b980b215d2p+0, 0x1.a8fcaf48d160ep+0, 0x1.86b6aefb21354p+0,
    0x1.5db797ce33782p+0, 0x1.97245f95ced1ep+0, 0x1.d374bc9af440fp+0, 0x1.bc9cf978d3794p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed0NormalDigest = 0x1ed1c4bc6d6caf9fu;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed0Integers[] = {0,
                                             0,
                                             0,
                                             1,
                                             1,
                                             1,
                                             -2,
                                             -1,
                                             -3,
                                             75,
                                             16,
                                             175,
                                             2091914554,
                                             2940191514,
                                             1622296031,
                                             2605480817,
                                             4169308741,
                                             3133163871,
                                             2334851565,
                                             4016105485,
                                             3504064339,
                                             3296472610530097912,
                                             -4301913762313287025,
                                             3349734316776996743,
                                             764824518918699309,
                                             -3694663496263986633,
                                             -1426169044194109712};
inline constexpr int64_t kSeed0Permutation[] = {9, 2, 7, 4, 5, 11, 0, 3, 6, 10, 8, 1};
inline constexpr int64_t kSeed0Shuffle[] = {4, 5, 2, 6, 3, 8, 7, 0, 1};

// The stream of seed 7: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed7Words64[] = {0xa00641a9f1e54a8bu, 0xe5afcdbcaf266a95u,
                                             0xc693565f940af962u, 0x39a72dabd56a2742u};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed7Mixed[] = {0xf1e54a8bu, 0xa00641a9u, 0xaf266a95u,
                                           0xc693565f940af962u, 0xe5afcdbcu};
inline constexpr double kSeed7Doubles[] = {0x1.400c8353e3ca9p-1, 0x1.cb5f9b795e4cdp-1,
                                           0x1.8d26acbf2815fp-1, 0x1.cd396d5eab510p-3};
inline constexpr double kSeed7Uniform[] = {0x1.99e9aee5b1dd0p-7, 0x1.4565c58efd47cp-5,
                                           0x1.c3aef596e6accp-6, -0x1.c238754ddd58dp-6};
inline constexpr double kSeed7Normal[] = {
    0x1.801427a31c200p+0, 0x1.931ea59a5b304p+0, 0x1.6e74867f27eaap+0, 0x1.47008b169cfe0p+0,
    0x1.62e6ac81cf697p+0, 0x1.4088dce346582p+0, 0x1.83d9648d8e0e4p+0, 0x1.d5c6162a50782p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed7NormalDigest = 0xa5ced82f338d1d62u;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed7Integers[] = {0,
                                             0,
                                             0,
                                             1,
                                             1,
                                             1,
                                             3,
                                             1,
                                             2,
                                             833,
                                             225,
                                             55,
                                             966903282,
                                             2813912609,
                                             16960732,
                                             2146567901,
                                             3527149199,
                                             564533598,
                                             2009765324,
                                             1301514368,
                                             1195828903,
                                             41950284489161615,
                                             4509861353265478839,
                                             -2625813791829561100,
                                             -6267981650750626528,
                                             2075989278181149548,
                                             -8412785061906228198};
inline constexpr int64_t kSeed7Permutation[] = {4, 6, 10, 0, 1, 3, 8, 7, 2, 5, 9, 11};
inline constexpr int64_t kSeed7Shuffle[] = {8, 0, 7, 1, 3, 6, 2, 4, 5};

// The stream of seed 42: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed42Words64[] = {0xc621fbcd16d92688u, 0x705a5661a791ffc1u,
                                              0xdbcd12c26eda1624u, 0xb286b60e1600888du};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed42Mixed[] = {0x16d92688u, 0xc621fbcdu, 0xa791ffc1u,
                                            0xdbcd12c26eda1624u, 0x705a5661u};
inline constexpr double kSeed42Doubles[] = {0x1.8c43f79a2db24p-1, 0x1.c16959869e47ep-2,
                                            0x1.b79a2584ddb42p-1, 0x1.650d6c1c2c011p-1};
inline constexpr double kSeed42Uniform[] = {0x1.c0d97eba2bd40p-6, -0x1.9090f63c0b010p-8,
                                            0x1.25c36f3afc536p-5, 0x1.435e26c08cd04p-6};
inline constexpr double kSeed42Normal[] = {
    0x1.93807c1104fc7p+0, 0x1.3d70e680d5960p+0, 0x1.b0076473cee6ap+0, 0x1.bc32365a2afe7p+0,
    0x1.03223d4dd8bdcp+0, 0x1.2ca917492050ep+0, 0x1.882e8983ad802p+0, 0x1.6bc2ae6e120d3p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed42NormalDigest = 0xeefe3e225e340ba3u;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed42Integers[] = {0,
                                              0,
                                              0,
                                              0,
                                              1,
                                              1,
                                              0,
                                              0,
                                              3,
                                              85,
                                              697,
                                              201,
                                              303366471,
                                              3142699569,
                                              2370024276,
                                              3269070127,
                                              3081541440,
                                              3376120483,
                                              550243867,
                                              1934392879,
                                              1592565392,
                                              1326921525630756611,
                                              2976950438412308571,
                                              -521911896219017455,
                                              -5031557492454108871,
                                              1006911596399048737,
                                              -8046151446014672978};
inline constexpr int64_t kSeed42Permutation[] = {0, 7, 6, 9, 11, 3, 5, 2, 4, 10, 1, 8};
inline constexpr int64_t kSeed42Shuffle[] = {3, 0, 7, 2, 4, 6, 1, 5, 8};

// The stream of seed 4294967296: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed4294967296Words64[] = {0xe3c5ebe285ac1625u, 0x8ea09968fe31dbccu,
                                                      0xcd084ff84d8de9beu, 0xf4de16ec3a8b9986u};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed4294967296Mixed[] = {0x85ac1625u, 0xe3c5ebe2u, 0xfe31dbccu,
                                                    0xcd084ff84d8de9beu, 0x8ea09968u};
inline constexpr double kSeed4294967296Doubles[] = {0x1.c78bd7c50b582p-1, 0x1.1d4132d1fc63bp-1,
                                                    0x1.9a109ff09b1bdp-1, 0x1.e9bc2dd875173p-1};
inline constexpr double kSeed4294967296Uniform[] = {0x1.3f4626081226ap-5, 0x1.7675bdb304fc0p-8,
                                                    0x1.ed01ffcebd25cp-6, 0x1.75f9e2f3ee8b8p-5};
inline constexpr double kSeed4294967296Normal[] = {
    0x1.869705c08d3a2p+0, 0x1.413f0af6e57afp+0, 0x1.4bae6f6451442p+0, 0x1.3e372ef4a7a3dp+0,
    0x1.5b3c10b6bc0f2p+0, 0x1.fe26fdb347d69p+0, 0x1.992cc1b93a552p+0, 0x1.7fda2aaba1412p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed4294967296NormalDigest = 0xf71e78ca68ef02cbu;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed4294967296Integers[] = {0,
                                                      0,
                                                      0,
                                                      1,
                                                      1,
                                                      1,
                                                      0,
                                                      -1,
                                                      2,
                                                      228,
                                                      956,
                                                      891,
                                                      188812646,
                                                      204100381,
                                                      761499941,
                                                      1077298781,
                                                      3383627625,
                                                      1087800620,
                                                      3116956871,
                                                      2657582579,
                                                      17401381,
                                                      -3407992509153470903,
                                                      4231421689362277204,
                                                      -3435169039219935171,
                                                      1471203914947156924,
                                                      -3418579654295851515,
                                                      -8606718141445180559};
inline constexpr int64_t kSeed4294967296Permutation[] = {0, 7, 1, 11, 3, 10, 4, 6, 9, 8, 2, 5};
inline constexpr int64_t kSeed4294967296Shuffle[] = {1, 3, 6, 7, 8, 0, 4, 2, 5};

// The stream of seed 9223372036854775813: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed9223372036854775813Words64[] = {
    0x7af08e89d1f1456du, 0xe777e80c301c2fd6u, 0xa44875755450c1c0u, 0xff81ef497d16368u};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed9223372036854775813Mixed[] = {0xd1f1456du, 0x7af08e89u, 0x301c2fd6u,
                                                             0xa44875755450c1c0u, 0xe777e80cu};
inline constexpr double kSeed9223372036854775813Doubles[] = {
    0x1.ebc23a2747c50p-2, 0x1.ceefd01860385p-1, 0x1.4890eaeaa8a18p-1, 0x1.ff03de92fa2c0p-5};
inline constexpr double kSeed9223372036854775813Uniform[] = {
    -0x1.0316b13c695a0p-9, 0x1.4b194cf3cd26ep-5, 0x1.d06c45ddd0d68p-7, -0x1.667f9cf14d620p-5};
inline constexpr double kSeed9223372036854775813Normal[] = {
    0x1.34265ab56a6cep+0, 0x1.5e3f921228164p+0, 0x1.6ea5c6b15cd8cp+0, 0x1.541b08a84f646p+0,
    0x1.a1ed05d349b04p+0, 0x1.9e8fad0fb9cc6p+0, 0x1.cfb3198c9cf1cp+0, 0x1.2fb43095eda04p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed9223372036854775813NormalDigest = 0x997c7e174c5f46f2u;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed9223372036854775813Integers[] = {0,
                                                               0,
                                                               0,
                                                               1,
                                                               0,
                                                               0,
                                                               3,
                                                               -1,
                                                               1,
                                                               593,
                                                               62,
                                                               229,
                                                               552844198,
                                                               91789204,
                                                               2317967904,
                                                               1785494968,
                                                               2492239109,
                                                               271345680,
                                                               1584425440,
                                                               1214478322,
                                                               2474557500,
                                                               3508894897195051146,
                                                               3469117838186277989,
                                                               -2543623131966971848,
                                                               4631422666342606397,
                                                               -4768036639852942303,
                                                               -5307163001154876818};
inline constexpr int64_t kSeed9223372036854775813Permutation[] = {2, 3,  10, 1, 8, 7,
                                                                  4, 11, 5,  0, 6, 9};
inline constexpr int64_t kSeed9223372036854775813Shuffle[] = {1, 3, 2, 7, 8, 5, 0, 4, 6};

// The stream of seed 18446744073709551615: each line starts afresh unless it says otherwise.
inline constexpr uint64_t kSeed18446744073709551615Words64[] = {
    0xae163a7a8c47568fu, 0xd86659f5f3382359u, 0x1e52b195bc2d24au, 0xe5026aaf19a22db1u};
// Three 32-bit words, a 64-bit word, then the 32-bit word that was buffered.
inline constexpr uint64_t kSeed18446744073709551615Mixed[] = {0x8c47568fu, 0xae163a7au, 0xf3382359u,
                                                              0x1e52b195bc2d24au, 0xd86659f5u};
inline constexpr double kSeed18446744073709551615Doubles[] = {
    0x1.5c2c74f5188eap-1, 0x1.b0ccb3ebe6704p-1, 0x1.e52b195bc2d00p-8, 0x1.ca04d55e33445p-1};
inline constexpr double kSeed18446744073709551615Uniform[] = {
    0x1.26f4a976b4fb8p-6, 0x1.1ae11fdfd71a0p-5, -0x1.93890faeda5d7p-5, 0x1.433aeefd1ed3cp-5};
inline constexpr double kSeed18446744073709551615Normal[] = {
    0x1.ae2a606323b0fp+0, 0x1.41de79bed2ba8p+0, 0x1.846e3501983e3p+0, 0x1.6d04c5dbcbe4dp+0,
    0x1.7e6940235a454p+0, 0x1.41eae8e9d52ecp+0, 0x1.c2543e6f36084p+0, 0x1.b3960c6b86a62p+0};
// FNV-1a of 200000 standard normals, so that the wedges and the tail are reached.
inline constexpr uint64_t kSeed18446744073709551615NormalDigest = 0xbe4d507d1e922adfu;
// Three draws from each of kRanges in one stream.
inline constexpr int64_t kSeed18446744073709551615Integers[] = {0,
                                                                0,
                                                                0,
                                                                1,
                                                                1,
                                                                1,
                                                                2,
                                                                -1,
                                                                -3,
                                                                100,
                                                                894,
                                                                604,
                                                                1027050730,
                                                                2611763414,
                                                                1898829782,
                                                                167088798,
                                                                784637208,
                                                                1089746788,
                                                                2197146666,
                                                                2973527325,
                                                                1149036305,
                                                                2724015962808641624,
                                                                1691856882027513,
                                                                823809669650835929,
                                                                -8001808714631262883,
                                                                1030688490948983402,
                                                                -3383461552299149555};
inline constexpr int64_t kSeed18446744073709551615Permutation[] = {8, 6, 3, 2, 11, 0,
                                                                   4, 7, 1, 5, 9,  10};
inline constexpr int64_t kSeed18446744073709551615Shuffle[] = {8, 7, 3, 0, 4, 6, 1, 2, 5};

}  // namespace menger::recorded
