// SPDX-License-Identifier: Apache-2.0
#include "host/lib/semantics/index_list.h"

#include <gtest/gtest.h>

namespace heddle::semantics {
namespace {

struct Node {
  ListLink free;
};

TEST(FreeList, ElementsExistFromTheirFirstUseAndStayWhereTheyAre) {
  std::vector<Node> nodes;
  FreeList<Node, &Node::free> list(&nodes, 3);
  EXPECT_TRUE(nodes.empty());
  EXPECT_EQ(list.Pop(nodes), 0U);
  EXPECT_EQ(nodes.size(), 1U);
  const Node* const first = nodes.data();
  list.Push(nodes, 0);
  // One that was never used comes before one that was.
  EXPECT_EQ(list.Pop(nodes), 1U);
  EXPECT_EQ(list.Pop(nodes), 2U);
  EXPECT_EQ(nodes.data(), first);
  EXPECT_FALSE(list.empty(nodes));
  EXPECT_EQ(list.Pop(nodes), 0U);
  EXPECT_TRUE(list.empty(nodes));
  EXPECT_EQ(list.Pop(nodes), kNone);
  EXPECT_EQ(nodes.size(), list.limit());
}

TEST(FreeList, TheOneFreedFirstGoesAgainFirst) {
  std::vector<Node> nodes;
  FreeList<Node, &Node::free> list(&nodes, 2);
  ASSERT_EQ(list.Pop(nodes), 0U);
  ASSERT_EQ(list.Pop(nodes), 1U);
  list.Push(nodes, 1);
  list.Push(nodes, 0);
  EXPECT_EQ(list.Pop(nodes), 1U);
  EXPECT_EQ(list.Pop(nodes), 0U);
}

}  // namespace
}  // namespace heddle::semantics
